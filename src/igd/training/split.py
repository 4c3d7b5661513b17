"""Which images are learnt from, which scale the parts of a score, which calibrate it.

Images of one group (a patient, a part) are on one side of every split, and one image of each group
calibrates, drawn at random. The promise is then about an image of a new group: if new groups and
those that calibrate are exchangeable, so are the drawn images and one that is drawn from a new
group, and its chance to be a false alarm is at most the stated rate, exactly and however many
images each group has. The highest score of each group would promise something about all images of a
new group at once, and only where it has as many; the price is a higher threshold, and defects are
missed. All images of all groups would promise nothing: 4 near copies of 15 images are not 60.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from igd.data.groups import group_numbers
from igd.data.image_set import ImageSet
from igd.data.sources import Source
from igd.errors import UserError
from igd.rng import generator, spread
from igd.scales.scale_settings import AutoEncoderSettings, ScaleSettings
from igd.training.plan import FEWEST, Plan

FEWEST_TO_SPLIT = 8  # held-out images, or groups of them
MOST_IN_TILES = 200  # images that calibrate, where each is scored in tiles, which takes seconds


class Split(NamedTuple):
    """Numbers of images."""

    training: Tensor
    scaling: Tensor  # that scale the parts of a score
    calibration: Tensor  # that calibrate it


def split_images(groups: Tensor, plan: Plan, seed: int) -> Split:
    """All images for everything where the plan is to cross-fit, except that one of each group
    calibrates; else a share of the groups is held out. `groups` has the number of each image's.
    """
    if plan.held_out is None:
        everything = torch.arange(len(groups))
        return Split(everything, everything, one_of_each(everything, groups, seed))
    held_out = choose_held_out(int(groups.max()) + 1, plan.held_out, seed)[groups]
    training = (~held_out).nonzero().flatten()
    if plan.on_features:  # whoever learns from no more leaves the others to calibrate
        training = _drawn(training, plan.learnt_from, seed)
        held_out = ~torch.isin(groups, groups[training])
    scaling, calibration = split_held_out(
        held_out.nonzero().flatten(), groups, plan.settings, plan.calibrated, seed
    )
    return Split(training, scaling, calibration)


def split_separate(count: int, separate: Tensor, plan: Plan, seed: int) -> Split:
    """All images are learnt from, as far as scales on features do so, and separate ones, numbered
    by themselves and of these groups, are for the rest.
    """
    training = torch.arange(count)
    if plan.on_features:
        training = _drawn(training, plan.learnt_from, seed)
    return split_unlearnt(separate, plan.settings, plan.calibrated)._replace(training=training)


def _drawn(images: Tensor, most: int, seed: int) -> Tensor:
    """At most so many of the images, at random and in their order: the first in a folder may be of
    one day or one camera, as may those of one group.
    """
    if len(images) <= most:
        return images
    rng = generator(seed, "learnt from")
    return images[torch.randperm(len(images), generator=rng)[:most]].sort().values


def split_unlearnt(groups: Tensor, settings: Sequence[ScaleSettings], calibrated: bool) -> Split:
    """Images that nothing learns from."""
    everything = torch.arange(len(groups))
    return Split(everything[:0], *split_held_out(everything, groups, settings, calibrated))


def bounded(split: Split, rate: float | None) -> Split:
    """The same with no more images to score than time allows, of those in tiles: some of them, or
    as many as a lower rate needs.
    """
    most = max(MOST_IN_TILES, math.ceil(2 / rate) if rate and 0 < rate < 1 else 0)
    scaling, calibration = (
        each[spread(len(each), most)] for each in (split.scaling, split.calibration)
    )
    return Split(split.training, scaling, calibration)


def choose_held_out(count: int, share: float, seed: int) -> Tensor:
    """Which groups are kept from training: a mask (count,)."""
    if not 0 < share < 1:
        raise UserError(f"calibration is {share}; it is a share of the images, between 0 and 1")
    kept = min(max(1, round(share * count)), count - 2)
    mask = torch.zeros(count, dtype=torch.bool)
    mask[torch.randperm(count, generator=generator(seed, "hold out"))[:kept]] = True
    return mask


def split_held_out(
    held_out: Tensor,
    groups: Tensor,
    settings: Sequence[ScaleSettings],
    calibrated: bool,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """The held-out images that scale the parts of a score, and those that calibrate it.

    One part alone is only stretched, which changes no order and no p-value. Several are weighed
    against each other by what they say about images, and the promise holds for images that had no
    say in it: a quarter of the groups is set aside, drawn at random, so that neither part is
    earlier than the other.
    """
    first = settings[0]
    one_part = (
        len(settings) == 1 and isinstance(first, AutoEncoderSettings) and first.patch is not None
    )
    held_out = held_out[groups[held_out].argsort(stable=True)]
    present = groups[held_out].unique()
    if one_part or not calibrated or len(present) < FEWEST_TO_SPLIT:
        return held_out, one_of_each(held_out, groups, seed)
    order = torch.randperm(len(present), generator=generator(seed, "set aside"))
    aside = torch.isin(groups[held_out], present[order[: len(present) // 4]])
    return held_out[aside], one_of_each(held_out[~aside], groups, seed)


def one_of_each(images: Tensor, groups: Tensor, seed: int) -> Tensor:
    """An image of each group, drawn at random, in the order of the groups' numbers."""
    rng = generator(seed, "one image of each group")
    shuffled = images[torch.randperm(len(images), generator=rng)]
    _, first = np.unique(groups[shuffled].numpy(), return_index=True)
    return shuffled[torch.from_numpy(first)]


def groups_of_images(source: Source, images: ImageSet) -> Tensor:
    """The number of each image's group, from 0."""
    return torch.from_numpy(group_numbers(source.groups, images.numbers))


def check_groups(source: Source, groups: Tensor) -> None:
    """Refuse so few groups that none can be kept from training."""
    count = int(groups.max()) + 1
    if count < FEWEST:
        raise UserError(
            f"{source.described}: its {len(groups)} images are of {count} group(s), by "
            f"{source.grouped_by}; {FEWEST} are needed, better 100"
        )


def unit_of(source: Source) -> str:
    """What is counted where a rate is promised."""
    return "images" if source.groups is None else "groups"


def described_groups(source: Source) -> dict[str, Any]:
    """How calibration images were grouped, for a model's provenance; no group's label is in it."""
    if source.groups is None:
        return {}
    return {"grouped_by": source.grouped_by, "groups": len({*source.groups})}
