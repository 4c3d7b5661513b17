"""An encoder measured now and then while it learns; what measuring takes does not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from igd.backbones.architectures import Backbone


class Point(NamedTuple):
    """Of the curve."""

    step: int
    seconds: float
    measured: Any


class EncoderWatch:
    """What pre-training calls after every step; measures after some of them."""

    def __init__(
        self,
        steps: Collection[int],
        measure: Callable[[Backbone], Any],
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self.steps, self.measure, self.clock = steps, measure, clock
        self.curve: list[Point] = []
        self.started, self.measuring = clock(), 0.0

    @property
    def seconds(self) -> float:
        """That the encoder has learnt for."""
        return self.clock() - self.started - self.measuring

    def __call__(self, step: int, encoder: Backbone) -> None:
        if step not in self.steps:
            return
        seconds = self.seconds
        encoder.network.eval()
        self.curve.append(Point(step, round(seconds, 1), self.measure(encoder)))
        encoder.network.train()
        self.measuring += self.seconds - seconds
