"""One score from parts of different range: each is measured by how far normal images stray in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ALARMING = 3.0  # spreads above the middle of normal images that make a score of 1/2, where calibration says nothing else
LEAST_SPREAD = 0.02  # of the middle: a few held-out images may lie closer together by chance


@dataclass(frozen=True)
class Unit:
    """The middle and the spread of a part's values for held-out normal images."""

    middle: float
    spread: float

    @staticmethod
    def measured(values: Tensor) -> Unit:
        """Median and median deviation (scaled to a Gaussian's sigma): a few odd images among the normal ones do no harm."""
        middle = values.double().median()
        spread = 1.4826 * (values.double() - middle).abs().median()
        return Unit(float(middle), max(float(spread), LEAST_SPREAD * abs(float(middle)), 1e-9))

    def __call__(self, values: Tensor) -> Tensor:
        """Values in spreads above the middle."""
        return (values - self.middle) / self.spread


def squashed(spreads: Tensor, alarming: float = ALARMING) -> Tensor:
    """Any number of spreads as a score in (0, 1): rising everywhere, 1/2 where it becomes alarming, never quite 0 or 1."""
    excess = (spreads - alarming) / ALARMING
    return 0.5 * (1 + excess / (1 + excess.abs()))


def joint(parts: list[tuple[Tensor, float]], units: list[Unit] | None) -> Tensor:
    """The weighted mean of parts: of their spreads above normal, or, without units, as they are: the paper's plain sum."""
    values = (
        [value for value, _ in parts] if units is None else [unit(part) for unit, (part, _) in zip(units, parts, strict=True)]
    )
    weighted = [value * share for value, (_, share) in zip(values, parts, strict=True)]
    return torch.stack(weighted).sum(dim=0) / sum(share for _, share in parts)


def combined(parts: list[tuple[Tensor, float]], units: list[Unit] | None, alarming: float = ALARMING) -> Tensor:
    """Parts as one value in (0, 1), 1/2 where their spreads become alarming; without units, their plain mean."""
    return joint(parts, units) if units is None else squashed(joint(parts, units), alarming)
