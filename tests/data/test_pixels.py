"""Patches cut out and laid over are the image again."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from igd.data.pixels import PatchSamples, all_patches, lay_over, mirrored, moved, normalise


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
    expected = [pixels.pixels[40, :, 32:, 32:], pixels.pixels[7, :, :32, :32], pixels.pixels[40, :, :32, 16:48]]
    assert torch.equal(batch, normalise(torch.stack(expected)))


def test_mirrored_margin_is_numpys() -> None:
    pixels = torch.randint(0, 256, (2, 3, 20, 30), dtype=torch.uint8)
    expected = np.pad(pixels.numpy(), ((0, 0), (0, 0), (7, 7), (7, 7)), mode="reflect")
    np.testing.assert_array_equal(mirrored(pixels, 7), expected)
    assert torch.equal(mirrored(pixels, 0), pixels)


def test_moved_images_are_turned_and_shifted_by_no_more_than_asked() -> None:
    """Where a spot lies: as far from the middle as before if images are turned, and within the shift if they are not."""
    side, place = 64, torch.tensor([48.0, 40.0])  # row and column
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    spot = 200 * torch.exp(-((rows - place[0]) ** 2 + (columns - place[1]) ** 2) / 18)
    pixels = spot.round().to(torch.uint8).expand(20, 1, side, side)

    def places(images: torch.Tensor) -> torch.Tensor:
        weight = images[:, 0].double()
        return torch.stack([(weight * axis).sum(dim=(1, 2)) / weight.sum(dim=(1, 2)) for axis in (rows, columns)], dim=1)

    def around_middle(place: torch.Tensor) -> torch.Tensor:
        return place - (side - 1) / 2

    by = places(moved(pixels, 3, 0, torch.Generator().manual_seed(1))) - place
    assert (by.abs() < 3.1).all()
    assert (by.amax(dim=0) > 2).all()
    assert (by.amin(dim=0) < -2).all()
    turned = around_middle(places(moved(pixels, 0, 10, torch.Generator().manual_seed(1))))
    torch.testing.assert_close(turned.norm(dim=1), around_middle(place).norm().double().expand(20), rtol=0, atol=0.2)
    cosine = F.cosine_similarity(turned, around_middle(place).double()[None])
    assert math.cos(math.radians(10.2)) < cosine.min() < math.cos(math.radians(7))
    aside = turned[:, 0] * around_middle(place)[1] - turned[:, 1] * around_middle(place)[0]
    assert aside.min() < 0 < aside.max()


def test_moved_images_have_no_gaps_and_may_stay_where_they_are() -> None:
    pixels = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
    assert torch.equal(moved(pixels, 0, 0, torch.Generator()), pixels)
    plain = torch.full((4, 3, 16, 16), 77, dtype=torch.uint8)
    assert torch.equal(moved(plain, 5, 30, torch.Generator()), plain)
