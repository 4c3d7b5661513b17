"""Alarms ring when they should, and only then."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from igd.method.em import train
from igd.method.gaussian import GaussianDescriptor
from igd.method.networks import AutoEncoder, Critic, Decoded
from igd.method.objective import OBJECTIVES
from igd.method.schedule import Training
from igd.method.similarity import PATCH
from igd.method.training_state import RECORDED, Batch, start_training
from igd.training.diagnostics import (
    TrainingFailed,
    check_decoder,
    check_scores,
    check_training,
    snapshot,
)


class Noise:
    images = torch.randn(20, 1, 32, 32)

    def __len__(self) -> int:
        return 20

    def encoder_input(self, indices: torch.Tensor) -> torch.Tensor:
        return self.images[indices]

    def batch(self, indices: torch.Tensor, mirrored: torch.Tensor | None = None) -> Batch:
        return Batch(self.images[indices], self.images[indices])


@pytest.fixture
def trained(fabric: Fabric):
    training = Training(steps=4, batch_size=10, learning_rate=1e-3)
    state = start_training(AutoEncoder(32, 1, 4, 8), Critic(32, 1, 4), Noise(), training)
    before = snapshot(state)
    train(state, Noise(), OBJECTIVES["igd"], PATCH, training, fabric)
    state.history[:] = 0.01
    state.history[:, RECORDED.index("classification")] = 0.5
    return state, before


def test_a_sound_training_is_quiet(trained) -> None:
    state, before = trained
    assert check_training(state, before, OBJECTIVES["igd"]) == []


def test_unmoved_weights(trained) -> None:
    state, _ = trained
    with pytest.raises(TrainingFailed, match="did not change the encoder"):
        check_training(state, snapshot(state), OBJECTIVES["igd"])


def test_collapsed_spread(trained) -> None:
    state, before = trained
    omega = GaussianDescriptor(torch.zeros(8), torch.tensor(1e-12))
    (warning,) = check_training(replace(state, descriptor=omega), before, OBJECTIVES["igd"])
    assert "collapsed" in warning


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("critic", 0.06, "no better than a constant"),
        ("classification", 1.0, "saturated"),
        ("classification", 0.01, "vanished"),
    ],
)
def test_losses_that_mean_nothing(trained, column: str, value: float, says: str) -> None:
    state, before = trained
    state.history[:, RECORDED.index(column)] = value
    (warning,) = check_training(state, before, OBJECTIVES["igd"])
    assert says in warning


def test_latents_that_shrink_below_the_floor(fabric: Fabric) -> None:
    """Nothing but the floor on sigma^2 keeps l_h from falling as the latents' scale does."""
    training = Training(steps=40, batch_size=10, learning_rate=1e-3, online_rate=0.1)
    state = start_training(AutoEncoder(32, 1, 4, 8), Critic(32, 1, 4), Noise(), training)
    before = snapshot(state)
    objective = replace(OBJECTIVES["igd"], reconstruction_weight=0.0, variance_floor=1.0)
    train(state, Noise(), objective, PATCH, training, fabric)
    said = check_training(state, before, objective)
    assert any("the Gaussian loss vanished" in each for each in said)
    assert not any("vanished" in each for each in check_training(state, before, objective, True))


def test_a_decoder_that_ignores_its_latent() -> None:
    model, image = AutoEncoder(32, 1, 4, 8), torch.randn(8, 1, 32, 32)
    with torch.no_grad():
        model.decoder.linear.weight.zero_()
    (warning,) = check_decoder(model, Batch(image, image), PATCH)
    assert "ignores the latent" in warning


def test_a_decoder_that_a_constant_would_beat() -> None:
    """It uses its latent, and shows each image without what all of them share."""
    common, own = torch.randn(1, 1, 32, 32), torch.randn(16, 1, 32, 32)

    def said(image: torch.Tensor) -> list[str]:
        return check_decoder(
            lambda seen: Decoded(seen, seen - common, None), Batch(image, image), PATCH
        )

    alike, varied = common + own / 2, common + own
    (warning,) = said(alike)
    assert "worse than a constant" in warning
    assert said(varied) == []  # poor as it is
    assert said(alike[:3]) == []  # whose median is, at each pixel, one of them


def test_scores() -> None:
    check_scores(np.array([0.1, 0.2]))
    with pytest.raises(TrainingFailed, match="same score"):
        check_scores(np.full(5, 0.7))
    with pytest.raises(TrainingFailed, match="not finite"):
        check_scores(np.array([0.1, np.nan]))
