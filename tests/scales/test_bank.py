"""A bank of patches: near to what is in it, far from all else, wherever it is."""

import pytest
import torch

from igd.backbones.features import Features
from igd.scales.bank import BankScale, coreset, covariance, whitening
from igd.scales.scale_settings import BankSettings

SETTINGS = BankSettings(maps=(0,), patches=50)


def maps(count: int, seed: int = 0) -> torch.Tensor:
    """Patches that lie near a line, in eight dimensions."""
    rng = torch.Generator().manual_seed(seed)
    along = torch.randn(count, 1, 6, 6, generator=rng)
    direction = torch.ones(8).view(1, 8, 1, 1)
    return 5 + along * direction.cumsum(1) / 8 + 0.1 * torch.randn(count, 8, 6, 6, generator=rng)


@pytest.fixture
def scale() -> BankScale:
    scale = BankScale(SETTINGS)
    scale.learn(Features([maps(20).half()], None), torch.Generator().manual_seed(0))
    return scale


def test_what_is_unlike_all_patches_is_far_wherever_it_is(scale: BankScale) -> None:
    images = maps(2, seed=1)
    images[0, :, 4, 1] = torch.tensor([9.0, 0, 9, 0, 9, 0, 9, 0])
    (distance,) = scale.distances(Features([images], None))
    assert distance.shape == (2, 6, 6)
    assert divmod(int(distance[0].argmax()), 6) == (4, 1)
    assert distance[0].max() > 10 * distance[1].max()


def test_positions_do_not_matter(scale: BankScale) -> None:
    images = maps(3, seed=2)
    (distance,) = scale.distances(Features([images], None))
    (turned,) = scale.distances(Features([images.flip(-1)], None))
    torch.testing.assert_close(turned.flip(-1), distance, rtol=1e-4, atol=1e-5)


def test_stored_and_restored_measures_the_same(scale: BankScale, tmp_path) -> None:
    other = BankScale(SETTINGS)
    other.restore(scale.tensors(), tmp_path)
    features = Features([maps(3, seed=3)], None)
    assert torch.equal(other.distances(features)[0], scale.distances(features)[0])


def test_whitening_makes_white_but_for_what_hardly_varies() -> None:
    vectors = torch.randn(5000, 4) * torch.tensor([10.0, 1.0, 0.1, 1e-6])
    white = vectors @ whitening(covariance(vectors), ridge=1e-9)
    torch.testing.assert_close(covariance(white).float()[1:, 1:], torch.eye(3), atol=0.05, rtol=0)
    ridged = vectors @ whitening(covariance(vectors), ridge=0.1)
    assert (ridged.square().mean(dim=0) < 1.01).all()


def test_a_coreset_leaves_no_vector_far_away() -> None:
    clusters = torch.cat([torch.randn(500, 8) * 0.01 + centre for centre in 10 * torch.eye(8)])
    chosen = coreset(clusters, 8, torch.Generator().manual_seed(0))
    assert sorted((chosen // 500).tolist()) == list(range(8))
    assert len(set(coreset(clusters, 100, torch.Generator().manual_seed(0)).tolist())) == 100
