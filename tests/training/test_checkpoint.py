"""A run is known by its settings and its images, wherever their pixels are kept."""

import torch

from igd.data.store import Selection, keep_pixels
from igd.training.checkpoint import fingerprint


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
