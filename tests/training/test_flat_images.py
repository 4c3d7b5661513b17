"""Images that show nothing are refused with a sentence; those that hardly differ are not."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import stripes

from igd import IGD
from igd.errors import UserError


@pytest.mark.parametrize("recipe", ["fast", "paper"])
@pytest.mark.parametrize("value", [0, 128, 255])
@pytest.mark.parametrize("noise", [0, 1])
def test_nothing_is_learnt_from_flat_images(recipe: str, value: int, noise: int) -> None:
    rng = np.random.default_rng(0)
    images = np.full((20, 64, 64, 3), value) + rng.integers(0, noise + 1, (20, 64, 64, 3))
    with pytest.raises(UserError, match="20 of 20 images are of one grey or colour all over"):
        IGD(recipe=recipe).fit(images.clip(0, 255).astype(np.uint8))


def test_a_few_of_them_do_no_harm() -> None:
    images = stripes(24, 96, colour=True)
    images[:3] = 0
    assert IGD(image_size=96).fit(images).threshold_ > 0


def test_two_near_copies_and_a_different_image_are_enough() -> None:
    rng, first = np.random.default_rng(0), stripes(1, side=96)[0]
    near = np.clip(first.astype(int) + rng.integers(-2, 3, (2, 96, 96)), 0, 255)
    images = [*near.astype(np.uint8), np.ascontiguousarray(first.T)]
    assert len(IGD(image_size=96).fit(images).calibration_.scores) == 3
