"""Views of images: the same size and range, the same chance the same view, and no image all by
itself.
"""

import pytest
import torch
from torch import Tensor

from igd.pretraining.augmentation import (
    GREY,
    random_colour,
    random_crop,
    random_grey,
    random_view,
)

ALL = [random_view, random_crop, random_colour, random_grey]


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def image() -> Tensor:
    return torch.rand(64, 3, 16, 16)


@pytest.mark.parametrize("augment", ALL)
def test_shape_and_range_stay(augment, image: Tensor) -> None:
    view = augment(image, rng())
    assert view.shape == image.shape
    assert view.min() >= -1e-6
    assert view.max() <= 1 + 1e-6


@pytest.mark.parametrize("augment", ALL)
def test_the_same_chance_gives_the_same_view_and_another_one_another(
    augment, image: Tensor
) -> None:
    before = image.clone()
    assert torch.equal(augment(image, rng(1)), augment(image, rng(1)))
    assert not torch.equal(augment(image, rng(1)), augment(image, rng(2)))
    assert torch.equal(image, before)


def test_crops_of_the_whole_are_the_image_or_its_mirror_image(image: Tensor) -> None:
    """Of the full area only the shape varies; where it is square, nothing is left but the
    mirror.
    """
    smooth = torch.linspace(0, 1, 16).view(1, 1, 1, 16).expand(200, 3, 16, 16)
    view = random_crop(smooth, rng(), smallest=1.0)
    slope = view[:, 0, 8, 12] - view[:, 0, 8, 3]
    assert 0.3 < (slope < 0).float().mean() < 0.7  # mirrored half of the time
    assert (slope.abs() > 0.35).all()


def test_crops_show_a_part_enlarged() -> None:
    ramp = torch.linspace(0, 1, 64).view(1, 1, 1, 64).expand(300, 3, 64, 64)
    view = random_crop(ramp, rng(), smallest=0.2)
    shown = view.amax(dim=(1, 2, 3)) - view.amin(dim=(1, 2, 3))
    assert shown.min() < 0.6
    # Never less than the smallest area at the narrowest shape.
    assert shown.min() > 0.2**0.5 * 0.75**0.5 - 0.05


def test_grey_is_what_the_eye_sees(image: Tensor) -> None:
    grey = random_grey(image, rng(), share=1.0)
    expected = sum(weight * image[:, channel] for channel, weight in enumerate(GREY))
    for channel in range(3):
        torch.testing.assert_close(grey[:, channel], expected)


@pytest.mark.parametrize(("augment", "share"), [(random_grey, 0.2), (random_colour, 0.8)])
def test_only_a_share_of_the_images_changes(augment, share: float) -> None:
    image = torch.rand(2000, 3, 2, 2)
    changed = (augment(image, rng()) != image).flatten(1).any(dim=1).float().mean()
    assert changed.item() == pytest.approx(share, abs=0.04)


def test_colours_without_strength_stay(image: Tensor) -> None:
    torch.testing.assert_close(random_colour(image, rng(), strength=0.0), image)


def test_grey_images_stay_grey() -> None:
    image = torch.rand(50, 1, 8, 8).expand(-1, 3, -1, -1)
    view = random_view(image, rng())
    torch.testing.assert_close(view[:, 0], view[:, 2], rtol=0, atol=1e-5)
