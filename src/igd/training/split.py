"""Which images are learnt from, which scale the parts of a score, which calibrate it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from igd.errors import UserError
from igd.rng import generator
from igd.scales.recipes import AutoEncoderSettings, ScaleSettings
from igd.training.plan import LEARNT_FROM, Plan

FEWEST_TO_SPLIT = 8  # held-out images


class Split(NamedTuple):
    """Numbers of images."""

    training: Tensor
    scaling: Tensor  # that scale the parts of a score
    calibration: Tensor  # that calibrate it


def split_images(count: int, plan: Plan, seed: int) -> Split:
    """All images for everything where the plan is to cross-fit; else a share is held out."""
    if plan.held_out is None:
        everything = torch.arange(count)
        return Split(everything, everything, everything)
    held_out = choose_held_out(count, plan.held_out, seed)
    if plan.on_features:  # whoever learns from no more leaves the others to calibrate
        too_many = (~held_out).nonzero().flatten()[LEARNT_FROM:]
        held_out[too_many] = True
    scaling, calibration = split_held_out(
        held_out.nonzero().flatten(), plan.settings, plan.calibrated
    )
    return Split((~held_out).nonzero().flatten(), scaling, calibration)


def split_separate(count: int, separate: int, plan: Plan) -> Split:
    """All images are learnt from, as far as scales on features do so, and `separate` ones, numbered
    by themselves, are for the rest.
    """
    learnt_from = min(count, LEARNT_FROM) if plan.on_features else count
    return split_unlearnt(separate, plan.settings, plan.calibrated)._replace(
        training=torch.arange(learnt_from)
    )


def split_unlearnt(count: int, settings: Sequence[ScaleSettings], calibrated: bool) -> Split:
    """Images that nothing learns from, in any order, so that neither part is earlier than the
    other.
    """
    order = torch.randperm(count, generator=generator(0, "separate images"))
    return Split(order[:0], *split_held_out(order, settings, calibrated))


def choose_held_out(count: int, share: float, seed: int) -> Tensor:
    """Which images are kept from training: a mask (count,)."""
    if not 0 < share < 1:
        raise UserError(f"calibration is {share}; it is a share of the images, between 0 and 1")
    kept = min(max(1, round(share * count)), count - 2)
    mask = torch.zeros(count, dtype=torch.bool)
    mask[torch.randperm(count, generator=generator(seed, "hold out"))[:kept]] = True
    return mask


def split_held_out(
    held_out: Tensor, settings: Sequence[ScaleSettings], calibrated: bool
) -> tuple[Tensor, Tensor]:
    """The held-out images that scale the parts of a score, and those that calibrate it.

    One part alone is only stretched, which changes no order and no p-value. Several are weighed
    against each other by what they say about images, and the promise holds for images that had no
    say in it: a quarter is set aside.
    """
    first = settings[0]
    one_part = (
        len(settings) == 1 and isinstance(first, AutoEncoderSettings) and first.patch is not None
    )
    if one_part or not calibrated or len(held_out) < FEWEST_TO_SPLIT:
        return held_out, held_out
    count = len(held_out) // 4
    return held_out[:count], held_out[count:]
