"""The start of the linear layer: white normal features, and the Mahalanobis distance of
scikit-learn.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.covariance import EmpiricalCovariance, ledoit_wolf_shrinkage
from torch import Tensor, nn

from igd.scales.whitening import LEAST, principal, start_whitened


def features(count: int, size: int) -> Tensor:
    """Vectors of unit length, correlated, with spreads that differ tenfold, around a mean far from
    0.
    """
    mixed = torch.randn(count, size) @ torch.randn(size, size) * torch.logspace(-1, 0, size)
    return F.normalize(mixed + 5 * torch.randn(size), dim=1)


def whitened(vectors: Tensor, outputs: int, bias: bool = True) -> Tensor:
    linear = nn.Linear(vectors.shape[1], outputs, bias=bias)
    start_whitened(linear, vectors)
    return linear(vectors).detach()


def test_many_vectors_come_out_centred_and_nearly_white() -> None:
    vectors = features(20_000, 4)
    latent = whitened(vectors, 4).double()
    torch.testing.assert_close(
        latent.mean(dim=0), torch.zeros(4, dtype=torch.float64), rtol=0, atol=1e-3
    )
    covariance = latent.T.cov(correction=0)
    # Shrinkage turns no axis.
    torch.testing.assert_close(covariance, covariance.diagonal().diag(), rtol=0, atol=1e-3)
    # It moves large variances a little and small ones more.
    assert covariance.diagonal().max() < 1 / (1 - LEAST)
    assert covariance.diagonal()[0] > 0.95


def test_squared_distance_is_the_mahalanobis_distance() -> None:
    vectors = features(300, 12)
    unit = vectors.double().numpy()
    shrinkage = max(LEAST, ledoit_wolf_shrinkage(unit))
    oracle = EmpiricalCovariance().fit(unit)
    empirical = oracle.covariance_
    shrunk = (1 - shrinkage) * empirical + shrinkage * np.trace(empirical) / 12 * np.eye(12)
    oracle._set_covariance(shrunk)
    distance = whitened(vectors, 12).square().sum(dim=1)
    np.testing.assert_allclose(distance, oracle.mahalanobis(unit), rtol=1e-3)


def test_fewer_outputs_keep_the_directions_of_largest_variance() -> None:
    vectors = features(500, 10)
    torch.testing.assert_close(whitened(vectors, 3), whitened(vectors, 10)[:, :3])
    variance = whitened(vectors, 10).var(dim=0)
    # The less a direction varies, the more it is shrunk.
    assert torch.equal(variance, variance.sort(descending=True).values)


def test_more_outputs_than_inputs_are_zero() -> None:
    assert (whitened(features(50, 3), 5)[:, 3:] == 0).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fewer_vectors_than_dimensions_are_no_obstacle(count: int) -> None:
    vectors = features(count, 8)
    if count == 1:
        vectors = vectors.repeat(2, 1) + torch.tensor([[0.0], [1e-3]])
    assert whitened(vectors, 8).isfinite().all()


def test_a_layer_without_bias_only_turns_and_stretches() -> None:
    vectors = features(500, 6)
    with_bias = whitened(vectors, 6)
    without = whitened(vectors, 6, bias=False)
    torch.testing.assert_close(
        without - without.mean(dim=0), with_bias - with_bias.mean(dim=0), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize(("number", "count"), [(40, 12), (9, 7), (9, 12)])
def test_directions_are_those_of_the_covariance(number: int, count: int) -> None:
    vectors = torch.randn(number, 12, dtype=torch.float64) * torch.logspace(0, 1, 12)
    centred = vectors - vectors.mean(dim=0)
    variance, direction = principal(centred, count)
    torch.testing.assert_close(direction.T @ direction, torch.eye(count, dtype=torch.float64))
    expected = torch.linalg.eigvalsh(centred.T @ centred / number).flip(0)[:count]
    torch.testing.assert_close(variance, expected)
    torch.testing.assert_close((centred @ direction).square().mean(dim=0), expected)


def test_features_that_are_dead_or_nearly_so_have_directions() -> None:
    """A network's channels may hardly ever fire; in single precision, LAPACK gives up on such."""
    vectors = torch.randn(400, 200) * torch.logspace(0, -25, 200)
    vectors[:, ::4] = 0
    centred = vectors - vectors.mean(dim=0)
    variance, direction = principal(centred, 100)
    torch.testing.assert_close(direction.T @ direction, torch.eye(100), rtol=0, atol=1e-5)
    torch.testing.assert_close((centred @ direction).square().mean(dim=0), variance)
