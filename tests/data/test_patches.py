"""Patches cut out and laid over are the image again."""

import numpy as np
import pytest
import torch

from igd.data.patches import PatchSamples, all_patches, lay_over, mirrored, normalise


def test_range_is_the_papers() -> None:
    ends = normalise(torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 3, 1, 1))
    assert ends.max() - ends.min() == pytest.approx(4.7579, abs=1e-3)


@pytest.mark.parametrize(
    ("image_side", "side", "stride", "count"),
    [(256, 32, 16, 225), (64, 64, 16, 1), (64, 32, 32, 4)],
)
def test_patches_laid_over_are_the_image(
    image_side: int, side: int, stride: int, count: int
) -> None:
    pixels = torch.randint(0, 256, (2, 1, image_side, image_side), dtype=torch.uint8)
    samples = PatchSamples(pixels, side, stride)
    assert len(samples) == 2 * count
    patches = samples[torch.arange(len(samples))]
    whole = lay_over(patches.view(2, samples.rows, samples.columns, side, side), stride)
    torch.testing.assert_close(whole, normalise(pixels)[:, 0], atol=1e-5, rtol=1e-5)
    assert torch.equal(all_patches(pixels, side, stride).flatten(0, 2), patches)


def test_indices_may_come_in_any_order() -> None:
    samples = PatchSamples(torch.randint(0, 256, (3, 3, 64, 64), dtype=torch.uint8), 32, 16)
    order = torch.randperm(len(samples))
    assert torch.equal(samples[order], samples[torch.arange(len(samples))][order])


class Counted:
    """Pixels that take note of which images were read."""

    def __init__(self, pixels: torch.Tensor) -> None:
        self.pixels, self.shape, self.read = pixels, pixels.shape, []

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, indices: torch.Tensor) -> torch.Tensor:
        self.read += indices.tolist()
        return self.pixels[indices]


def test_a_batch_reads_the_images_it_needs_and_each_once() -> None:
    pixels = Counted(torch.randint(0, 256, (50, 1, 64, 64), dtype=torch.uint8))
    samples = PatchSamples(pixels, 32, 16)
    batch = samples[torch.tensor([9 * 40 + 8, 9 * 7, 9 * 40 + 1])]
    assert pixels.read == [7, 40]
    expected = [
        pixels.pixels[40, :, 32:, 32:],
        pixels.pixels[7, :, :32, :32],
        pixels.pixels[40, :, :32, 16:48],
    ]
    assert torch.equal(batch, normalise(torch.stack(expected)))


def test_mirrored_margin_is_numpys() -> None:
    pixels = torch.randint(0, 256, (2, 3, 20, 30), dtype=torch.uint8)
    expected = np.pad(pixels.numpy(), ((0, 0), (0, 0), (7, 7), (7, 7)), mode="reflect")
    np.testing.assert_array_equal(mirrored(pixels, 7), expected)
    assert torch.equal(mirrored(pixels, 0), pixels)
