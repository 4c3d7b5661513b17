"""Protocols of the paper's robustness tables: less training data, or test anomalies among it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from igd.data.samples import Sample

Item = TypeVar("Item")


@dataclass(frozen=True)
class Split:
    """What a run learns from, and what it is tested on."""

    train: list[Sample]
    test: list[Sample]


@dataclass(frozen=True)
class Protocol:
    """How a run's split differs from the data set's own; the defaults change nothing."""

    training_share: float = 1.0  # of the normal training images
    contamination: float = 0.0  # share of the test anomalies that move into the training set

    @property
    def described(self) -> str:
        if self.contamination:
            return f"{self.contamination:.0%} of the anomalies in training"
        return f"{self.training_share:.0%} of the training set"

    def apply(self, split: Split, seed: int) -> Split:
        """The split to use: a random choice, the same for the same seed whichever method asks."""
        chance = np.random.default_rng([seed, 20210110])
        train, test = split.train, split.test
        if self.training_share < 1:
            train = _chosen(train, _count(self.training_share, len(train)), chance)
        if self.contamination:
            anomalies = [n for n, sample in enumerate(test) if sample.label]
            moved = set(_chosen(anomalies, _count(self.contamination, len(anomalies)), chance))
            train = train + [test[n] for n in sorted(moved)]
            test = [sample for n, sample in enumerate(test) if n not in moved]
        return Split(train, test)


def _count(share: float, total: int) -> int:
    return max(1, round(share * total))


def _chosen(items: list[Item], count: int, chance: np.random.Generator) -> list[Item]:
    return [items[n] for n in sorted(chance.permutation(len(items))[:count])]
