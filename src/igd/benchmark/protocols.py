"""Protocols of the paper's robustness tables, as part of what a run is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Protocol:
    """How a run's data differ from the data set's own; the defaults change nothing."""

    training_share: float = 1.0  # of the normal training images
    contamination: float = 0.0  # share of the test anomalies that move into the training set

    @property
    def described(self) -> str:
        if self.contamination:
            return f"{self.contamination:.0%} of the anomalies in training"
        return f"{self.training_share:.0%} of the training set"
