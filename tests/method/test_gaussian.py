"""E-step statistics against NumPy, and what distance to the centre means."""

import numpy as np
import pytest
import torch

from igd.method.gaussian import LatentMoments, anomaly, keep_off_zero, normality


@pytest.fixture
def latents() -> torch.Tensor:
    return torch.randn(1000, 16) * 3 + 100  # far from 0, where a naive sum of squares loses digits


def test_moments_equal_numpy(latents: torch.Tensor) -> None:
    moments = LatentMoments()
    for batch in latents.split(64):
        moments.update(batch)
    expected = latents.double().numpy()
    np.testing.assert_allclose(moments.mean, expected.mean(axis=0), rtol=1e-12)
    variance = ((expected - expected.mean(axis=0)) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(moments.variance, variance, rtol=1e-9)
    assert moments.variance.dtype == torch.float64


@pytest.mark.parametrize("sizes", [[1000], [1] * 1000, [999, 1], [1, 500, 499]])
def test_moments_do_not_depend_on_the_split(latents: torch.Tensor, sizes: list[int]) -> None:
    whole = LatentMoments().update(latents)
    moments = LatentMoments()
    for batch in latents.split(sizes):
        moments.update(batch)
    torch.testing.assert_close(moments.mean, whole.mean, rtol=1e-12, atol=0)
    torch.testing.assert_close(moments.variance, whole.variance, rtol=1e-9, atol=0)


def test_moments_merge_across_processes_in_any_order(latents: torch.Tensor) -> None:
    packed = [LatentMoments().update(part).packed() for part in latents.split([100, 650, 250])]
    for order in ([0, 1, 2], [2, 0, 1]):
        merged = LatentMoments()
        for index in order:
            merged.merge(LatentMoments.unpacked(packed[index]))
        torch.testing.assert_close(
            merged.packed(), LatentMoments().update(latents).packed(), rtol=1e-9, atol=0
        )


def test_variance_around_another_centre(latents: torch.Tensor) -> None:
    centre = torch.full((16,), 99.0, dtype=torch.float64)
    expected = (latents.double() - centre).square().sum(dim=1).mean()
    torch.testing.assert_close(LatentMoments().update(latents).variance_around(centre), expected)


def test_normality_and_anomaly() -> None:
    mean, variance = torch.zeros(2), torch.tensor(4.0)
    latent = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 100.0]])
    torch.testing.assert_close(
        normality(latent, mean, variance), torch.tensor([1.0, float(np.exp(-1)), 0.0])
    )
    torch.testing.assert_close(
        anomaly(latent, mean, variance), 1 - normality(latent, mean, variance)
    )


def test_anomaly_keeps_the_order_of_latents_near_the_centre() -> None:
    near = torch.tensor([[1e-5], [2e-5]])
    score = anomaly(near, torch.zeros(1), torch.tensor(1.0))
    assert 0 < score[0] < score[1]


def test_anomaly_gradient() -> None:
    latent = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    mean, variance = torch.randn(3, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: anomaly(z, mean, variance), (latent,))


def test_keep_off_zero() -> None:
    mean = keep_off_zero(torch.tensor([0.0, 0.05, -0.05, 0.5, -0.5]), 0.1)
    torch.testing.assert_close(mean, torch.tensor([0.1, 0.1, -0.1, 0.5, -0.5]))
