"""How well turns are told apart: by normal images, by others, and by those that can't tell."""

import pytest
import torch
from torch import Tensor

from igd.scales.turns import lacking, turn_direction

LENGTH = 6  # of one turn's vector


def seen(count: int, apart: float, seed: int = 0) -> Tensor:
    """Vectors of images in four turns, one after another, that lie around means so far apart."""
    means = apart * torch.eye(4, LENGTH)
    noise = torch.randn(count, 4, LENGTH, generator=torch.Generator().manual_seed(seed))
    return (means + noise).flatten(1)


def lack(direction: Tensor, normal: Tensor, vectors: Tensor) -> Tensor:
    return lacking(vectors @ direction, normal.mean(dim=0) @ direction)


def test_who_mistakes_the_turns_lacks_what_normal_images_have() -> None:
    normal = seen(500, apart=3)
    direction = turn_direction(normal)
    fresh = lack(direction, normal, seen(200, apart=3, seed=1))
    lost = lack(direction, normal, seen(200, apart=0, seed=2))
    mistaken = seen(200, apart=3, seed=3).unflatten(1, (4, -1)).roll(1, dims=1).flatten(1)
    assert fresh.mean().abs() < 0.05
    assert 0.8 < lost.mean() < 1  # what shares of the margin there are to lack
    assert lack(direction, normal, mistaken).mean() > 1.2 * lost.mean()


def test_it_is_fisher_s_discriminant() -> None:
    """The margin between log-probabilities that Gaussians of one covariance give, up to a
    factor.
    """
    normal = seen(20_000, apart=2)
    each = seen(50, apart=2, seed=1).unflatten(1, (4, -1))
    logits = 2 * each[..., :4] - 2  # around means of length 2, of unit covariance
    margin = (logits.diagonal(dim1=1, dim2=2) - logits.mean(dim=2)).sum(dim=1)
    found = each.flatten(1) @ turn_direction(normal)
    agreement = torch.corrcoef(torch.stack([found, margin]))[0, 1]
    assert agreement > 0.99


def test_the_worse_they_are_told_the_less_they_count() -> None:
    shares = [
        float(normal.mean(dim=0) @ turn_direction(normal))
        for normal in (seen(2000, apart) for apart in (0.0, 0.2, 1.0, 5.0))
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.02
    assert 0.3 < shares[2] < 0.8
    assert 0.95 < shares[3] < 1


@pytest.mark.parametrize("count", [20, 100, 300])
def test_chance_does_not_tell_turns(count: int) -> None:
    """Of vectors much longer than images are many, with a spectrum that falls."""
    falling = 1 / torch.arange(1, 129).sqrt()
    for seed in range(5):
        noise = torch.randn(count, 4, 128, generator=torch.Generator().manual_seed(seed))
        vectors = (falling * noise).flatten(1)
        assert float(vectors.mean(dim=0) @ turn_direction(vectors)) < 0.2


def test_images_that_are_all_alike_tell_nothing_and_break_nothing() -> None:
    for vectors in (torch.ones(5, 4 * LENGTH), torch.zeros(3, 4 * LENGTH)):
        assert torch.equal(turn_direction(vectors), torch.zeros(4 * LENGTH))


def test_with_few_images_it_is_finite() -> None:
    assert turn_direction(seen(3, apart=3)).isfinite().all()


def test_who_tells_turns_better_than_normal_images_is_not_the_more_normal_for_it() -> None:
    """Where normal images hardly tell them, one that does would outweigh any distance."""
    normal = seen(2000, apart=0.5)
    direction = turn_direction(normal)
    told = float(normal.mean(dim=0) @ direction)
    clearer = seen(200, apart=8, seed=1)
    assert 0 < told < 0.5
    assert ((normal.mean(dim=0) - clearer) @ direction).median() < -3 * told
    torch.testing.assert_close(lack(direction, normal, clearer), torch.full((200,), -told))
