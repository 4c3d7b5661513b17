"""Every objective is a setting of the same code."""

import pytest
import torch

from igd.method.gaussian import GaussianDescriptor, anomaly
from igd.method.networks import AutoEncoder, Decoded
from igd.method.objective import (
    OBJECTIVES,
    Objective,
    anomaly_score,
    autoencoder_loss,
    classification_loss,
)
from igd.method.reconstruction import reconstruction_error
from igd.method.similarity import PATCH


def omega(size: int = 4, variance: float = 4.0) -> GaussianDescriptor:
    return GaussianDescriptor(torch.zeros(size), torch.tensor(variance))


def test_igd_is_the_papers() -> None:
    igd = OBJECTIVES["igd"]
    assert (igd.classifier, igd.reconstruction, igd.interpolation, igd.zeta) == (
        "gaussian",
        "ms-ssim+mae",
        True,
        None,
    )
    assert (igd.critic_weight, igd.reconstruction_weight, igd.fooling_weight, igd.rho) == (
        1,
        1,
        0.1,
        0.15,
    )


def test_total_is_the_weighted_sum_of_eq_7() -> None:
    image = torch.rand(4, 1, 32, 32)
    decoded = AutoEncoder(32, 1, 4, latent_size=4)(image, torch.rand(4) / 2)
    predicted = torch.tensor([0.1, 0.2, 0.3, 0.4])
    loss = autoencoder_loss(
        Objective(reconstruction_weight=2), PATCH, omega(), image, decoded, predicted
    )
    expected_h = anomaly(decoded.latent, torch.zeros(4), torch.tensor(4.0)).mean()
    expected_r = reconstruction_error(image, decoded.reconstruction, PATCH).mean()
    torch.testing.assert_close(
        loss.total, expected_h + 2 * (expected_r + 0.1 * predicted.square().mean())
    )


@pytest.mark.parametrize(
    ("name", "classification", "reconstruction", "critic"),
    [
        ("igd", True, True, True),
        ("mse", False, True, False),
        ("rec", False, True, False),
        ("rec+gac", True, True, False),
        ("dsvdd", True, False, False),
        ("dsvdd+rec", True, True, False),
        ("authors", True, True, True),
    ],
)
def test_which_terms_count(
    name: str, classification: bool, reconstruction: bool, critic: bool
) -> None:
    objective = OBJECTIVES[name]
    image = torch.rand(4, 1, 32, 32)
    reconstructed = torch.rand(4, 1, 32, 32) if objective.reconstruction else None
    decoded = Decoded(torch.randn(4, 4), reconstructed, None)
    loss = autoencoder_loss(objective, PATCH, omega(), image, decoded, None)
    assert (loss.classification > 0).item() is classification
    assert (loss.reconstruction > 0).item() is reconstruction
    assert objective.interpolation is critic


def test_hypersphere_is_dsvdds() -> None:
    latent = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    descriptor = omega(2)
    assert classification_loss(OBJECTIVES["dsvdd"], descriptor, latent) == (1 + 9) / 2
    assert not OBJECTIVES["dsvdd"].bias
    assert OBJECTIVES["igd"].bias


def test_floor_stops_the_shrinking_of_latents_and_leaves_scores_alone() -> None:
    igd, descriptor = OBJECTIVES["igd"], omega(128, variance=1e-4)
    latent = torch.full((1, 128), 1e-3)
    assert classification_loss(igd, descriptor, latent) < 1e-3
    torch.testing.assert_close(
        anomaly_score(igd, descriptor, latent)[0], -torch.expm1(torch.tensor(-1.28))
    )
