"""A Gaussian of long vectors: Mahalanobis's distance under a shrunk covariance."""

import numpy as np
import pytest
import torch

from igd.scales.shrunk_gaussian import ShrunkGaussian
from igd.scales.whitening import shrinkage_of


def vectors(count: int, seed: int = 0, size: int = 12) -> torch.Tensor:
    """Correlated features."""
    rng = torch.Generator().manual_seed(seed)
    mixing = torch.randn(size, size, generator=torch.Generator().manual_seed(99))
    return 3 + torch.randn(count, size, generator=rng) @ mixing


def learnt(normal: torch.Tensor, most: int = 1024) -> ShrunkGaussian:
    gaussian = ShrunkGaussian(most)
    gaussian.learn(normal)
    return gaussian


@pytest.mark.parametrize("count", [200, 7])  # more vectors than features, and fewer
def test_distances_are_those_under_ledoit_and_wolfs_covariance(count: int) -> None:
    normal, others = vectors(count), vectors(20, seed=1)
    shrinkage = shrinkage_of(normal)
    covariance = np.cov(normal.double().numpy().T, bias=True)
    size = len(covariance)
    shrunk = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / size * np.eye(size)
    centred = (others - normal.mean(dim=0)).double().numpy()
    expected = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(shrunk), centred) / size
    distance = learnt(normal).distance(others)
    np.testing.assert_allclose(distance.numpy(), expected, rtol=0.02)  # directions are halves


def test_fewer_directions_leave_one_variance_for_all_others() -> None:
    normal = vectors(300)
    exact, rough = (learnt(normal, most) for most in (1024, 6))
    assert rough.directions.shape == (6, 12)
    others = torch.cat([vectors(50, seed=2), vectors(50, seed=3) + 8])
    order = [gaussian.distance(others) for gaussian in (exact, rough)]
    assert all(each[50:].min() > each[:50].median() for each in order)
    assert 0.7 < rough.distance(vectors(200, seed=4)).mean() < 1.3


def test_two_vectors_and_equal_vectors_do_not_make_it_singular() -> None:
    for normal in (vectors(2), vectors(1).repeat(5, 1)):
        assert learnt(normal).distance(vectors(3, seed=1)).isfinite().all()


def test_white_vectors_lie_as_far_from_the_mean() -> None:
    gaussian, others = learnt(vectors(300)), vectors(9, seed=1)
    torch.testing.assert_close(
        gaussian.whitened(others).square().mean(dim=1), gaussian.distance(others), rtol=0.01, atol=0
    )


def test_what_is_stored_measures_the_same() -> None:
    gaussian, restored, others = learnt(vectors(50)), ShrunkGaussian(1), vectors(5, seed=1)
    restored.restore(gaussian.tensors())
    assert torch.equal(restored.distance(others), gaussian.distance(others))


def test_more_vectors_teach_what_all_together_would() -> None:
    first, more, others = vectors(60), vectors(40, seed=5) + 1, vectors(9, seed=6)
    together = learnt(torch.cat([first, more]))
    extended = learnt(first)
    extended.shrinkage = together.shrinkage
    extended.extend(more, 60)
    torch.testing.assert_close(
        extended.distance(others), together.distance(others), rtol=0.02, atol=0
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("variance", lambda value: value[1:]),
        ("variance", lambda value: value[:, None]),  # one image would be measured all the same
        ("mean", lambda value: value[None]),
        ("directions", lambda value: value[:, 1:]),
        ("shrinkage", lambda value: value[None]),
    ],
)
def test_tensors_that_do_not_fit_are_refused(name: str, change) -> None:
    tensors = learnt(vectors(50)).tensors()
    tensors[name] = change(tensors[name])
    with pytest.raises(ValueError, match="wrong shape"):
        ShrunkGaussian(1024).restore(tensors)
