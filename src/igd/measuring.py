"""What held-out normal images say: where they lie, how far each part of a score strays, which scores and heats are usual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from igd.calibration import threshold
from igd.combination import ALARMING, Unit, joint, squashed
from igd.looking import Look, heat_of, parts_of
from igd.method.positions import PositionMoments
from igd.pretraining.features import FrozenBackbone
from igd.recipes import AnyScale, ScaleSettings
from igd.rows import Rows
from igd.scale import Scale

FEWEST_TO_SPLIT = 8  # held-out images
USUAL = 0.99  # share of a normal image's pixels that its heat map should leave uncoloured


@dataclass(frozen=True)
class Calibration:
    """Which scores and which map values are usual."""

    scores: Tensor  # (n,)
    peaks: Tensor  # (n,), the highest value of each map
    usual_heat: float
    alarming: float  # spreads that make a score of 1/2


def split_held_out(held_out: Tensor, settings: list[AnyScale], weighed: bool) -> tuple[Tensor, Tensor]:
    """The held-out images that the parts of a score are measured on, and those that it is calibrated on.

    One part alone is only stretched, which changes no order and no p-value. Several are weighed against each other by
    what they say about images, and the promise holds for images that had no say in it: a quarter is set aside.
    """
    one_part = len(settings) == 1 and not (isinstance(settings[0], ScaleSettings) and settings[0].patch is None)
    if one_part or not weighed or len(held_out) < FEWEST_TO_SPLIT:
        return held_out, held_out
    count = len(held_out) // 4
    return held_out[:count], held_out[count:]


def measure_scales(scales: list[Scale], frozen: FrozenBackbone | None, batches: Iterable[Tensor]) -> None:
    """Where normal images lie in each model's latent space, and which errors of reconstruction are usual at each place."""
    moments = [PositionMoments() for _ in scales]
    latents = [Rows() for _ in scales]
    for pixels in batches:
        seen = frozen(pixels) if frozen else None
        for scale, maps, latent in zip(scales, moments, latents, strict=True):
            maps.update(scale.look(pixels, seen).map[:, None])
            if scale.settings.patch is None:
                latent.add(scale.latents(pixels, seen))
    for scale, maps, latent in zip(scales, moments, latents, strict=True):
        scale.measure(latent.all if scale.settings.patch is None else None, maps)


def measure_units(looks: Iterable[list[Look]]) -> tuple[list[Unit], list[Unit]]:
    """How far normal images stray in each part of the score, and in the peak of each scale's map."""
    parts, peaks = Rows(), Rows()
    for batch in looks:
        parts.add(torch.stack([value for value, _ in parts_of(batch)], dim=1))
        peaks.add(torch.stack([look.map.flatten(1).amax(dim=1) for look in batch], dim=1))
    units, map_units = ([Unit.measured(column) for column in rows.all.T] for rows in (parts, peaks))
    return units, map_units


def calibrate(looks: Iterable[list[Look]], units: list[Unit] | None, map_units: list[Unit] | None, rate: float) -> Calibration:
    """Above a score of 1/2 an image is an alarm, at the accepted rate. (The paper's plain sum stays as it is.)"""
    joints, peaks, usual = Rows(), Rows(), Rows()
    for batch in looks:
        heat = heat_of(batch, map_units).flatten(1)
        joints.add(joint(parts_of(batch), units))
        peaks.add(heat.amax(dim=1))
        usual.add(heat.quantile(USUAL, dim=1))
    values = joints.all
    alarming = ALARMING if units is None else threshold(values, rate)
    scores = values if units is None else squashed(values, alarming)
    return Calibration(scores, peaks.all, usual.all.mean().item(), alarming)
