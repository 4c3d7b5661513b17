"""Images that show nothing are refused with a sentence."""

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
