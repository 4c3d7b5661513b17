"""What a trained model makes of images that it was not fitted to."""

import torch

from igd.looking import excess
from igd.method.gaussian import GaussianDescriptor
from igd.method.objective import OBJECTIVES
from igd.method.positions import PositionMoments
from igd.recipes import RECIPES
from igd.scale import FEWEST_MAPS, LEAST_SPREAD, Scale

SIDE = 32


def maps(count: int) -> torch.Tensor:
    """Errors that are large in the left half of every map, and noisy everywhere."""
    usual = torch.where(torch.arange(SIDE) < SIDE // 2, 0.8, 0.1).expand(count, SIDE, SIDE)
    return usual + 0.02 * torch.randn(count, SIDE, SIDE)


def usual_of(seen: torch.Tensor) -> Scale:
    scale = Scale(RECIPES["fast"].small[0], OBJECTIVES["igd"], SIDE, 1)
    scale.descriptor = GaussianDescriptor(torch.zeros(128), torch.tensor(1e-3), torch.tensor(0.0))
    moments = PositionMoments()
    moments.update(seen[:, None])
    scale.measure(torch.randn(5, 128), moments)
    return scale


def test_what_is_usual_at_its_place_is_not_shown() -> None:
    usual = usual_of(maps(50)).usual
    new = maps(1)
    new[0, 20:24, 24:28] += 0.2  # less than the usual error on the left, unusual here
    heat = excess(new, usual)
    row, column = divmod(int(heat.argmax()), SIDE)
    assert 20 <= row < 24
    assert 24 <= column < 28
    assert heat[0, :, : SIDE // 2].mean() < 1


def test_less_error_than_usual_is_nothing() -> None:
    usual = usual_of(maps(50)).usual
    assert excess(torch.zeros(1, SIDE, SIDE), usual).max() == 0


def test_places_that_agree_by_chance_keep_a_spread() -> None:
    seen = torch.full((FEWEST_MAPS, SIDE, SIDE), 0.5)
    heat = excess(seen[:1] + 0.5 * LEAST_SPREAD, usual_of(seen).usual)
    torch.testing.assert_close(heat, torch.ones_like(heat), rtol=1e-3, atol=0)


def test_too_few_maps_tell_nothing() -> None:
    assert usual_of(maps(FEWEST_MAPS - 1)).usual is None


def test_the_variance_is_that_of_images_it_was_not_fitted_to() -> None:
    assert 100 < usual_of(maps(5)).descriptor.variance < 160  # |z|^2 of 128 standard normals


def test_frozen_features_need_no_warm_up() -> None:
    settings = RECIPES["fast"].frozen_small[0]
    assert Scale(settings, OBJECTIVES["dsvdd"], SIDE, 1).objective.warm_up == 0.5
    assert Scale(settings, OBJECTIVES["dsvdd"], SIDE, 1, features=8).objective.warm_up == 0
