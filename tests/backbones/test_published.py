"""Published weights are used only as they were published."""

from __future__ import annotations

from pathlib import Path

import pytest

from igd.backbones import weights
from igd.backbones.architectures import DEFAULT
from igd.errors import UserError


def test_one_flipped_bit_of_the_packaged_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = weights.find_weights(DEFAULT)
    if packaged is None:
        pytest.skip("no ImageNet weights on this machine")
    weights.check_published(DEFAULT, packaged)
    contents = bytearray(packaged.read_bytes())
    contents[len(contents) // 2] ^= 1
    damaged = tmp_path / packaged.name
    damaged.write_bytes(contents)
    monkeypatch.setattr(weights, "find_weights", lambda name: damaged)
    with pytest.raises(UserError, match="not that of the published weights"):
        weights.load_backbone(DEFAULT)
    weights.load_backbone(DEFAULT, packaged)  # a file that was named is the user's choice
