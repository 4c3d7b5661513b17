"""Splits: no group on two sides, one image of each group calibrates, and without groups every image
is its own.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from igd.data.geometry import Geometry
from igd.method.objective import OBJECTIVES
from igd.scales.scale_settings import BankSettings, PositionSettings
from igd.training.plan import LEARNT_FROM, Plan
from igd.training.split import one_of_each, split_images, split_separate, split_unlearnt

SETTINGS = [PositionSettings(), BankSettings()]
CROSS_FITTED = Plan(Geometry(128), SETTINGS, OBJECTIVES["igd"], None, True, None)
HELD_OUT = replace(CROSS_FITTED, held_out=0.4)


def drawn_groups(count: int, most: int, seed: int = 0) -> Tensor:
    """So many groups of 1 to `most` images, in any order."""
    rng = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(count), rng.integers(1, most + 1, count))
    return torch.from_numpy(rng.permutation(numbers))


def within(groups: Tensor, images: Tensor) -> set[int]:
    return {*groups[images].tolist()}


def test_no_group_is_on_two_sides_and_one_image_of_each_calibrates() -> None:
    for seed in range(5):
        groups = drawn_groups(40, 6, seed)
        split = split_images(groups, HELD_OUT, seed)
        sides = [within(groups, each) for each in split]
        assert sum(map(len, sides)) == len(set().union(*sides)) == 40
        assert [len(side) for side in sides] == [24, 4, 12]
        assert len(split.calibration) == 12  # of 40 %, less a quarter
        assert len(split.training) == sum(int(number) in sides[0] for number in groups)


def test_cross_fitting_learns_from_all_and_calibrates_with_one_of_each() -> None:
    groups = drawn_groups(12, 5)
    split = split_images(groups, CROSS_FITTED, 0)
    assert len(split.training) == len(split.scaling) == len(groups)
    assert sorted(groups[split.calibration].tolist()) == list(range(12))


def test_without_groups_no_image_is_lost() -> None:
    split = split_images(torch.arange(50), HELD_OUT, 3)
    assert sorted(torch.cat(split).tolist()) == list(range(50))
    assert [len(part) for part in split] == [30, 5, 15]
    unlearnt = split_unlearnt(torch.arange(40), SETTINGS, True)
    assert sorted(torch.cat(unlearnt).tolist()) == list(range(40))
    assert [len(part) for part in unlearnt] == [0, 10, 30]


def test_groups_that_are_learnt_from_in_part_do_not_calibrate() -> None:
    groups = torch.arange(200).repeat_interleave(7)  # 600 is within a group
    split = split_images(groups, HELD_OUT, 0)
    assert len(split.training) == LEARNT_FROM
    assert within(groups, split.training).isdisjoint(
        within(groups, torch.cat([split.scaling, split.calibration]))
    )


@pytest.mark.parametrize("each", [1, 3, 100])
def test_no_side_has_the_first_images_of_a_folder(each: int) -> None:
    """They may be of one day or one camera, and the others as normal."""
    groups = torch.arange(3000 // each).repeat_interleave(each)
    split = split_images(groups, HELD_OUT, 0)
    apart = split_separate(3000, torch.arange(400), HELD_OUT, 0)
    assert len(split.training) == len(apart.training) == LEARNT_FROM
    assert len(within(groups, split.training)) >= min(400, 0.6 * 3000 / each)
    sides = [(side, 3000) for side in (*split, apart.training)]
    for side, last in [*sides, (apart.scaling, 400), (apart.calibration, 400)]:
        assert 0.25 < (side < last / 2).float().mean() < 0.75


def test_separate_images_are_split_by_group() -> None:
    groups = drawn_groups(40, 4)
    split = split_unlearnt(groups, SETTINGS, True)
    assert within(groups, split.scaling).isdisjoint(within(groups, split.calibration))
    assert (len(within(groups, split.scaling)), len(split.calibration)) == (10, 30)


def test_every_image_of_a_group_is_as_likely_to_be_drawn() -> None:
    groups = torch.tensor([0, 1, 1, 1, 1])
    drawn = [one_of_each(torch.arange(5), groups, seed).tolist() for seed in range(400)]
    assert {first for first, _ in drawn} == {0}
    counts = np.bincount([second for _, second in drawn], minlength=5)[1:]
    assert counts.min() > 70


def test_large_groups_calibrate_as_often_as_small_ones() -> None:
    """Else a new group would not be like those that calibrate."""
    shares = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        large = rng.permutation(40) < 20
        groups = torch.from_numpy(rng.permutation(np.repeat(np.arange(40), np.where(large, 8, 1))))
        split = split_unlearnt(groups, SETTINGS, True)
        shares.append(large[groups[split.calibration].numpy()].mean())
    assert np.mean(shares) == pytest.approx(0.5, abs=0.03)
