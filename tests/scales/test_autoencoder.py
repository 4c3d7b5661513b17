"""What a trained model makes of images that it was not fitted to."""

from dataclasses import replace

import pytest
import torch

from igd.method.gaussian import GaussianDescriptor
from igd.method.objective import OBJECTIVES
from igd.progress import Progress
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.position_moments import PositionMoments
from igd.scales.recipes import RECIPES
from igd.scales.scale_settings import without_effect_left_out

SIDE = 32


def test_the_variance_is_that_of_images_it_was_not_fitted_to() -> None:
    scale = AutoEncoderScale(RECIPES["fast"].small[0], OBJECTIVES["igd"], SIDE, 1)
    scale.descriptor = GaussianDescriptor(torch.zeros(128), torch.tensor(1e-3))
    moments = PositionMoments()
    moments.update(torch.rand(5, 1, SIDE, SIDE))
    scale.measure(torch.randn(5, 128), moments)
    assert 100 < scale.descriptor.variance < 160  # |z|^2 of 128 standard normals
    assert scale.background is not None


def test_frozen_features_need_no_warm_up() -> None:
    settings = RECIPES["fast"].frozen_small[0]
    assert AutoEncoderScale(settings, OBJECTIVES["dsvdd"], SIDE, 1).objective.warm_up == 0.5
    assert (
        AutoEncoderScale(settings, OBJECTIVES["dsvdd"], SIDE, 1, features=8).objective.warm_up == 0
    )


def described(objective: str, features: int | None = None) -> AutoEncoderScale:
    """A narrow scale of `fast`, untrained, with what it takes from its images."""
    settings = without_effect_left_out(
        replace(RECIPES["fast"].small[0], width=2),
        OBJECTIVES[objective],
        frozen=features is not None,
        calibrated=True,
    )
    scale = AutoEncoderScale(settings, OBJECTIVES[objective], SIDE, 1, features)
    pixels = torch.randint(0, 256, (20, 1, SIDE, SIDE), dtype=torch.uint8)
    samples = scale.samples(pixels, None if features is None else torch.randn(20, features))
    scale.start(samples)
    scale.descriptor = GaussianDescriptor(torch.zeros(scale.latent_size), torch.tensor(1.0))
    scale.autoencoder.requires_grad_(False)
    scale.describe(samples, Progress())
    return scale


def test_statistics_stand_in_the_score_where_l_h_stood() -> None:
    scale = described("igd")
    flat, noise = (torch.full((1, 1, SIDE, SIDE), 128), torch.randint(0, 256, (1, 1, SIDE, SIDE)))
    output = scale.score(torch.cat([flat, noise]).byte(), None)
    parts = dict(zip(output.terms, output.parts, strict=True))
    assert list(parts) == ["reconstruction", "anomaly", "statistics", "detail"]
    assert output.weights == [1, 0, 1, 1]
    assert set(output.least) == {2, 3}
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
    with pytest.raises(ValueError, match="no use for an encoder's statistics"):
        AutoEncoderScale(RECIPES["fast"].small[0], OBJECTIVES["rec"], SIDE, 1)
