"""The container: whole or refused, and in memory once it is read."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from igd.errors import UserError
from igd.files.tensors import has_checksum, read_tensors, write_tensors

HEADER = {"kind": "thing", "format": 3, "made_by": "igd 1"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tensors = {
        "one": torch.arange(6.0).view(2, 3),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "none": torch.zeros(0, 4),
    }
    write_tensors(tmp_path / "thing.igd", HEADER, tensors)
    return tmp_path / "thing.igd"


def test_what_was_written_is_read(file: Path) -> None:
    header, tensors = read_tensors(file, "thing", 3)
    assert header == HEADER
    assert tensors["one"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["none"].shape == (0, 4)
    assert has_checksum(file)


def test_every_flipped_bit_is_noticed_or_changes_nothing(file: Path) -> None:
    """A bit of white space or of an unused name may change nothing; a value never."""
    whole, (header, tensors) = file.read_bytes(), read_tensors(file, "thing", 3)
    accepted = 0
    for bit in range(8 * len(whole)):
        flipped = np.frombuffer(whole, np.uint8).copy()
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped.tobytes())
        try:
            again, read = read_tensors(file, "thing", 3)
        except UserError:
            continue
        accepted += 1
        assert again == header
        assert read.keys() == tensors.keys()
        assert all(torch.equal(read[name], value) for name, value in tensors.items())
    assert accepted < 8 * len(whole) / 100


def test_what_happens_to_the_file_later_changes_nothing(file: Path) -> None:
    _, tensors = read_tensors(file, "thing", 3)
    before = tensors["one"].clone()
    with file.open("rb+") as opened:  # in place, as `cp` does it
        opened.write(bytes(file.stat().st_size))
        opened.truncate(10)
    assert torch.equal(tensors["one"], before)


def test_a_missing_checksum(file: Path) -> None:
    from safetensors.torch import save_file

    save_file({"one": torch.ones(1)}, file, metadata={"igd": json.dumps(HEADER)})
    with pytest.raises(UserError, match="checksum"):
        read_tensors(file, "thing", 3, checked_since=3)
    assert read_tensors(file, "thing", 3, checked_since=4)[0] == HEADER
    assert not has_checksum(file)


@pytest.mark.parametrize(
    "described",
    [
        b'{"__metadata__":{"igd":' + b"[" * 100_000 + b"}}",
        b'{"__metadata__":{"igd":"' + b"[" * 100_000 + b'"}}',
        b'{"__metadata__":{"igd":"{\\"kind\\": \\"thing\\", \\"format\\": ' + b"9" * 5000 + b'}"}}',
        b'{"__metadata__":{"igd":7}}',
        b'{"__metadata__":[]}',
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"",
    ],
)
@pytest.mark.parametrize("length", [None, 0, 1, 2**40, 2**63 - 1, 2**64 - 1])
def test_odd_headers(tmp_path: Path, described: bytes, length: int | None) -> None:
    size = len(described) if length is None else length
    (tmp_path / "odd.igd").write_bytes(struct.pack("<Q", size) + described + bytes(64))
    with pytest.raises(UserError, match=r"odd\.igd"):
        read_tensors(tmp_path / "odd.igd", "thing", 3)
    (tmp_path / "odd.igd").write_bytes(described[:5])
    with pytest.raises(UserError, match=r"odd\.igd"):
        read_tensors(tmp_path / "odd.igd", "thing", 3)
