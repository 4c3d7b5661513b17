"""A run is known by its settings and its images, wherever their pixels are kept."""

from pathlib import Path

import pytest
import torch

from igd.checkpoint import FORMAT, KIND, Checkpoint, fingerprint
from igd.data.store import Selection, keep_pixels
from igd.errors import UserError
from igd.tensorfiles import write_tensors


def test_fingerprint_depends_on_the_pixels_and_not_on_where_they_are() -> None:
    pixels = torch.randint(0, 256, (150, 1, 8, 8), dtype=torch.uint8)
    expected = fingerprint({"steps": 3}, pixels)
    filed = keep_pixels(pixels[:, 0].numpy(), 150, held=0)
    assert fingerprint({"steps": 3}, filed) == expected
    assert fingerprint({"steps": 3}, Selection(filed, torch.arange(150))) == expected
    assert fingerprint({"steps": 4}, pixels) != expected
    assert fingerprint({"steps": 3}, Selection(filed, torch.arange(150).flip(0))) != expected
    pixels[149, 0, 7, 7] += 1
    assert fingerprint({"steps": 3}, pixels) != expected


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ({"made_by": "0.1", "parameters": {"seed": 0}}, r"other images; give"),
        ({"made_by": "0.1", "parameters": {"seed": 1}}, r"other settings \(seed was 1\); give"),
        ({"made_by": "0.0", "parameters": {"seed": 0}}, r"other settings \(made_by\); give"),
        (None, r"other images or settings; give"),
        ({"parameters": []}, r"other images or settings; give"),
    ],
)
def test_what_differs_is_said_and_nothing_else(tmp_path: Path, before: object, says: str) -> None:
    path = tmp_path / "run.checkpoint"
    write_tensors(path, {"kind": KIND, "format": FORMAT, "run": "another", "settings": before}, {"a/step": torch.tensor(1)})
    with pytest.raises(UserError, match=says):
        Checkpoint(path, "this one", {"made_by": "0.1", "parameters": {"seed": 0}}).load()
