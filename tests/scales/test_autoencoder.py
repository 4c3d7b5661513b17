"""What a trained model makes of images that it was not fitted to."""

from dataclasses import replace

import pytest
import torch

from igd.method.gaussian import GaussianDescriptor
from igd.method.objective import OBJECTIVES
from igd.scales.autoencoder import FEWEST_MAPS, LEAST_SPREAD, AutoEncoderScale
from igd.scales.position_moments import PositionMoments, excess
from igd.scales.recipes import RECIPES

SIDE = 32


def maps(count: int) -> torch.Tensor:
    """Errors that are large in the left half of every map, and noisy everywhere."""
    usual = torch.where(torch.arange(SIDE) < SIDE // 2, 0.8, 0.1).expand(count, SIDE, SIDE)
    return usual + 0.02 * torch.randn(count, SIDE, SIDE)


def measured_on(seen: torch.Tensor) -> AutoEncoderScale:
    scale = AutoEncoderScale(RECIPES["fast"].small[0], OBJECTIVES["igd"], SIDE, 1)
    scale.descriptor = GaussianDescriptor(torch.zeros(128), torch.tensor(1e-3))
    moments = PositionMoments()
    moments.update(seen[:, None])
    scale.measure(torch.randn(5, 128), moments)
    return scale


def test_what_is_usual_at_its_place_is_not_shown() -> None:
    background = measured_on(maps(50)).background
    new = maps(1)
    new[0, 20:24, 24:28] += 0.2  # less than the usual error on the left, unusual here
    anomaly_map = excess(new, background)
    row, column = divmod(int(anomaly_map.argmax()), SIDE)
    assert 20 <= row < 24
    assert 24 <= column < 28
    assert anomaly_map[0, :, : SIDE // 2].mean() < 1


def test_less_error_than_usual_is_nothing() -> None:
    background = measured_on(maps(50)).background
    assert excess(torch.zeros(1, SIDE, SIDE), background).max() == 0


def test_places_that_agree_by_chance_keep_a_spread() -> None:
    seen = torch.full((FEWEST_MAPS, SIDE, SIDE), 0.5)
    anomaly_map = excess(seen[:1] + 0.5 * LEAST_SPREAD, measured_on(seen).background)
    torch.testing.assert_close(anomaly_map, torch.ones_like(anomaly_map), rtol=1e-3, atol=0)


def test_too_few_maps_tell_nothing() -> None:
    assert measured_on(maps(FEWEST_MAPS - 1)).background is None


def test_the_variance_is_that_of_images_it_was_not_fitted_to() -> None:
    assert 100 < measured_on(maps(5)).descriptor.variance < 160  # |z|^2 of 128 standard normals


def test_frozen_features_need_no_warm_up() -> None:
    settings = RECIPES["fast"].frozen_small[0]
    assert AutoEncoderScale(settings, OBJECTIVES["dsvdd"], SIDE, 1).objective.warm_up == 0.5
    assert (
        AutoEncoderScale(settings, OBJECTIVES["dsvdd"], SIDE, 1, features=8).objective.warm_up == 0
    )


def described(objective: str, features: int | None = None) -> AutoEncoderScale:
    """A narrow scale of `fast`, untrained, with what it takes from its images."""
    settings = replace(RECIPES["fast"].small[0], width=2)
    scale = AutoEncoderScale(settings, OBJECTIVES[objective], SIDE, 1, features)
    pixels = torch.randint(0, 256, (20, 1, SIDE, SIDE), dtype=torch.uint8)
    samples = scale.samples(pixels, None if features is None else torch.randn(20, features))
    scale.start(samples)
    scale.descriptor = GaussianDescriptor(torch.zeros(scale.latent_size), torch.tensor(1.0))
    scale.autoencoder.requires_grad_(False)
    scale.describe(samples)
    return scale


def test_statistics_stand_in_the_score_where_l_h_stood() -> None:
    scale = described("igd")
    flat, noise = (torch.full((1, 1, SIDE, SIDE), 128), torch.randint(0, 256, (1, 1, SIDE, SIDE)))
    output = scale.score(torch.cat([flat, noise]).byte(), None)
    parts = dict(zip(output.terms, output.parts, strict=True))
    assert list(parts) == ["reconstruction", "anomaly", "statistics", "detail"]
    assert output.weights == [1, 0, 1, 1]
    assert (parts["statistics"][0], parts["detail"][0]) > (parts["statistics"][1], 1)
    scale.settings, scale.statistics = replace(scale.settings, statistics=False), None
    without = scale.score(torch.cat([flat, noise]).byte(), None)
    assert without.weights == [0.75, 0.25]
    for name, term in without.terms.items():
        torch.testing.assert_close(term, parts[name])


@pytest.mark.parametrize("objective", ["mse", "rec", "dsvdd"])
def test_an_objective_of_one_term_is_scored_by_it(objective: str) -> None:
    scale = described(objective)
    assert scale.statistics is None
    assert len(scale.score(torch.zeros(1, 1, SIDE, SIDE, dtype=torch.uint8), None).parts) == 1


def test_frozen_features_have_no_statistics() -> None:
    assert described("igd", features=8).statistics is None
