"""Scales in a region: what is outside neither counts nor reaches in."""

import pytest
import torch

from igd.backbones.features import Features
from igd.scales.bank import BankScale
from igd.scales.base import FeatureScale
from igd.scales.position import PositionScale
from igd.scales.region_mask import RegionMask, counted, extended
from igd.scales.scale_settings import BankSettings, Level, PositionSettings, WholeSettings
from igd.scales.whole import WholeScale

SIDE, GRID = 64, 8
LEVELS = (Level("only", (0,), cell=2),)


def left_half() -> RegionMask:
    mask = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    mask[:, : SIDE // 2] = True
    return RegionMask(mask)


def maps(count: int, seed: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return 1 + 0.1 * torch.randn(count, 4, GRID, GRID, generator=rng)


@pytest.fixture(
    params=[
        PositionScale(PositionSettings(levels=LEVELS)),
        BankScale(BankSettings(maps=(0,), patches=40)),
        WholeScale(WholeSettings(maps=(0,))),
    ],
    ids=lambda scale: scale.settings.name,
)
def scale(request: pytest.FixtureRequest) -> FeatureScale:
    scale: FeatureScale = request.param
    scale.region = left_half()
    scale.learn(Features([maps(40, 0).half()], None), torch.Generator().manual_seed(0))
    return scale


def test_features_outside_change_neither_score_nor_map(scale: FeatureScale) -> None:
    images, other = maps(3, 1), maps(3, 1)
    other[..., GRID // 2 :] = 9 * torch.rand(3, 4, GRID, GRID // 2)
    one, two = (
        scale.output(scale.distances(Features([each], None)), (SIDE, SIDE))
        for each in (images, other)
    )
    torch.testing.assert_close(one.parts, two.parts)
    for first, second in zip(one.maps, two.maps, strict=True):
        torch.testing.assert_close(first, second)
    pixels = torch.zeros(3, 3, SIDE, SIDE)
    torch.testing.assert_close(
        scale.latents(pixels, Features([images], None)),
        scale.latents(pixels, Features([other], None)),
    )


def test_features_outside_are_not_learnt_from(scale: FeatureScale) -> None:
    images, other = maps(40, 0), maps(40, 0)
    other[..., GRID // 2 :] = 9 * torch.rand(40, 4, GRID, GRID // 2)
    new = Features([maps(3, 1)], None)
    before = scale.output(scale.distances(new), (SIDE, SIDE))
    scale.learn(Features([other.half()], None), torch.Generator().manual_seed(0))
    after = scale.output(scale.distances(new), (SIDE, SIDE))
    torch.testing.assert_close(before.parts, after.parts)
    assert not torch.equal(images, other)


def test_features_inside_count(scale: FeatureScale) -> None:
    images, other = maps(2, 1), maps(2, 1)
    other[:, ::2, 3:5, 1:3] = 5
    for part, changed in zip(
        scale.output(scale.distances(Features([images], None)), (SIDE, SIDE)).parts,
        scale.output(scale.distances(Features([other], None)), (SIDE, SIDE)).parts,
        strict=True,
    ):
        assert (changed > part + 1).all()


def test_a_region_thinner_than_any_position_still_has_positions() -> None:
    mask = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    mask.fill_diagonal_(True)
    region = RegionMask(mask)
    rows = region.positions(4, 4) // 4
    assert rows.unique().tolist() == [0, 1, 2, 3]
    lone = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    lone[5, 60] = True
    assert RegionMask(lone).positions(4, 4).tolist() == [3]
    assert RegionMask(lone).pixels.tolist() == [5 * SIDE + 60]


def test_without_a_region_everything_counts() -> None:
    values = torch.rand(2, 3, 5, 4)
    assert torch.equal(counted(values, None), values.flatten(2))
    assert extended(values, None) is values


def test_beyond_the_edge_is_what_is_at_the_edge() -> None:
    values = torch.arange(GRID).float().expand(1, GRID, GRID)
    beyond = extended(values, left_half())
    assert torch.equal(beyond[..., : GRID // 2], values[..., : GRID // 2])
    assert (beyond[..., GRID // 2 :] == GRID // 2 - 1).all()
