"""Patches cut out and laid over are the image again."""

import pytest
import torch

from igd.data.pixels import PatchSamples, lay_over, normalise


def test_range_is_the_papers() -> None:
    ends = normalise(torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 3, 1, 1))
    assert ends.max() - ends.min() == pytest.approx(4.7579, abs=1e-3)


@pytest.mark.parametrize(("image_side", "side", "stride", "count"), [(256, 32, 16, 225), (64, 64, 16, 1), (64, 32, 32, 4)])
def test_patches_laid_over_are_the_image(image_side: int, side: int, stride: int, count: int) -> None:
    pixels = torch.randint(0, 256, (2, 1, image_side, image_side), dtype=torch.uint8)
    samples = PatchSamples(pixels, side, stride)
    assert len(samples) == 2 * count
    patches = samples[torch.arange(len(samples))]
    whole = lay_over(patches.view(2, samples.rows, samples.columns, side, side), stride)
    torch.testing.assert_close(whole, normalise(pixels)[:, 0], atol=1e-5, rtol=1e-5)


def test_indices_may_come_in_any_order() -> None:
    samples = PatchSamples(torch.randint(0, 256, (3, 3, 64, 64), dtype=torch.uint8), 32, 16)
    order = torch.randperm(len(samples))
    assert torch.equal(samples[order], samples[torch.arange(len(samples))][order])
