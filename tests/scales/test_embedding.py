"""A Gaussian of whole images' embeddings: Mahalanobis's distance under a shrunk covariance."""

from pathlib import Path

import numpy as np
import pytest
import torch

from igd.backbones.features import Features
from igd.scales.embedding import EmbeddingScale
from igd.scales.recipes import EmbeddingSettings
from igd.scales.whitening import shrinkage_of


def vectors(count: int, seed: int = 0, size: int = 12) -> torch.Tensor:
    """Correlated features."""
    rng = torch.Generator().manual_seed(seed)
    mixing = torch.randn(size, size, generator=torch.Generator().manual_seed(99))
    return 3 + torch.randn(count, size, generator=rng) @ mixing


def learnt(images: torch.Tensor, directions: int = 1024) -> EmbeddingScale:
    scale = EmbeddingScale(EmbeddingSettings(directions=directions))
    scale.learn(Features([], images), torch.Generator())
    return scale


@pytest.mark.parametrize("count", [200, 7])  # more images than features, and fewer
def test_distances_are_those_under_ledoit_and_wolfs_covariance(count: int) -> None:
    images, others = vectors(count), vectors(20, seed=1)
    (distance,) = learnt(images).distances(Features([], others))
    shrinkage = shrinkage_of(images)
    covariance = np.cov(images.double().numpy().T, bias=True)
    size = len(covariance)
    shrunk = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / size * np.eye(size)
    centred = (others - images.mean(dim=0)).double().numpy()
    expected = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(shrunk), centred) / size
    np.testing.assert_allclose(distance.numpy(), expected, rtol=0.02)  # directions are halves


def test_fewer_directions_leave_one_variance_for_all_others() -> None:
    images = vectors(300)
    exact, rough = (learnt(images, directions) for directions in (1024, 6))
    assert rough.directions.shape == (6, 12)
    others = Features([], torch.cat([vectors(50, seed=2), vectors(50, seed=3) + 8]))
    order = [scale.distances(others)[0] for scale in (exact, rough)]
    assert all(each[50:].min() > each[:50].median() for each in order)
    normal = rough.distances(Features([], vectors(200, seed=4)))[0]
    assert 0.7 < normal.mean() < 1.3


def test_two_images_and_equal_images_do_not_make_it_singular() -> None:
    for images in (vectors(2), vectors(1).repeat(5, 1)):
        (distance,) = learnt(images).distances(Features([], vectors(3, seed=1)))
        assert distance.isfinite().all()


def test_what_is_stored_measures_the_same() -> None:
    scale, restored = learnt(vectors(50)), EmbeddingScale(EmbeddingSettings())
    restored.restore(scale.tensors(), Path("x.igd"))
    others = Features([], vectors(5, seed=1))
    assert torch.equal(restored.distances(others)[0], scale.distances(others)[0])


def test_more_images_teach_what_all_together_would() -> None:
    first, more, others = vectors(60), vectors(40, seed=5) + 1, Features([], vectors(9, seed=6))
    together = learnt(torch.cat([first, more]))
    extended = learnt(first)
    extended.shrinkage = together.shrinkage
    extended.extend(Features([], more), 60, torch.Generator())
    torch.testing.assert_close(
        extended.distances(others)[0], together.distances(others)[0], rtol=0.02, atol=0
    )


def test_tensors_that_do_not_fit_are_refused() -> None:
    tensors = learnt(vectors(50)).tensors()
    tensors["variance"] = tensors["variance"][1:]
    with pytest.raises(ValueError, match="wrong shape"):
        EmbeddingScale(EmbeddingSettings()).restore(tensors, Path("x.igd"))
