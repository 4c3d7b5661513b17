"""What a score means: split-conformal p-values and thresholds, from normal images that the model
did not train on.

The promise: if a new normal image and the held-out ones are exchangeable (same product, camera,
light), the chance that it is called anomalous is at most the stated rate. Anomalies among the
held-out images, or a changed camera, break it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from igd.errors import UserError

DEFAULT_RATE = 0.05  # of false alarms, where the user states none


def p_values(scores: ArrayLike, calibration: ArrayLike) -> NDArray[np.float64]:
    """Share of normal images that look at least as anomalous: (1 + #{c_i >= s}) / (n + 1).

    >>> p_values([0.1, 0.9], [0.2, 0.3, 0.4])
    array([1.  , 0.25])
    """
    ordered = np.sort(np.asarray(calibration, dtype=np.float64))
    at_least = len(ordered) - np.searchsorted(
        ordered, np.asarray(scores, dtype=np.float64), side="left"
    )
    return (1 + at_least) / (len(ordered) + 1)


def smallest_rate(count: int) -> float:
    """The lowest false-alarm rate that `count` calibration images can promise."""
    return 1 / (count + 1)


def rate_to_ask(rate: float) -> str:
    """A rate as somebody may type it: rounded up, as the rate below it may be refused.

    >>> rate_to_ask(1 / 30), rate_to_ask(0.05), rate_to_ask(1 / 3)
    ('0.03334', '0.05', '0.3334')
    """
    unit = 10.0 ** (math.floor(math.log10(rate)) - 3)
    return f"{math.ceil(rate / unit - 1e-9) * unit:.4g}"


def choose_rate(
    asked: float | None,
    count: int,
    remedy: str = "",
    unit: str = "images",
) -> float:
    """The false-alarm rate to promise: the one asked for, or as near to the default as `count`
    images, or groups of them, allow. Too few are refused, with `remedy` as a way out.
    """
    if asked is None:
        return max(DEFAULT_RATE, smallest_rate(count))
    if not 0 < asked < 1:
        raise UserError(
            f"a false-alarm rate of {asked:g} is impossible; give one between 0 and 1, such as 0.05"
        )
    if asked < smallest_rate(count):
        remedy = remedy or f"give more normal {unit}, hold out a larger share (--calibration)"
        raise UserError(
            f"a false-alarm rate of {asked:g} needs at least {math.ceil(1 / asked) - 1} "
            f"calibration {unit}, and there are "
            f"{count}; {remedy}, or accept a rate of {rate_to_ask(smallest_rate(count))} "
            f"(--max-false-alarms)"
        )
    return asked


def threshold(calibration: ArrayLike, rate: float) -> float:
    """The score above which an image is anomalous: exactly those with a p-value of at most
    `rate`.
    """
    ordered = np.sort(np.asarray(calibration, dtype=np.float64))
    allowed = math.floor(rate * (len(ordered) + 1) + 1e-9)
    return float(ordered[len(ordered) - allowed])


@dataclass(frozen=True)
class Calibration:
    """What held-out normal images say about scores and maps: the promise rests on them."""

    scores: NDArray[np.floating]  # of each image, (n,)
    peaks: NDArray[np.floating]  # the highest value of each one's map, (n,)
    background_level: float  # map values up to this one are usual on normal images
    false_alarm_rate: float  # that is promised

    @property
    def threshold(self) -> float:
        """Images with a higher score are anomalous, at the promised rate."""
        return threshold(self.scores, self.false_alarm_rate)

    @property
    def pixel_threshold(self) -> float:
        """Map values above this are rarer than one normal image in 1 / `false_alarm_rate`."""
        return threshold(self.peaks, self.false_alarm_rate)

    def p_values(self, scores: ArrayLike) -> NDArray[np.float64]:
        return p_values(scores, self.scores)

    def at_rate(self, asked: float | None) -> Calibration:
        """The same calibration with another promise, where its images can keep it: the thresholds
        move, scores and p-values stay.
        """
        more = "calibrate on more normal images (igd calibrate)"
        return replace(self, false_alarm_rate=choose_rate(asked, len(self.scores), more))

    def check(self) -> None:
        """Raise `ValueError` for what no calibration can be, such as a damaged file may hold."""
        count = len(self.scores)
        possible = (
            self.scores.shape == self.peaks.shape == (count,)
            and np.isfinite(self.scores).all()
            and np.isfinite(self.peaks).all()
            and math.isfinite(self.background_level)
            and 0 < self.false_alarm_rate < 1
            and (count + 1) * self.false_alarm_rate >= 1 - 1e-9
        )
        if not possible:
            raise ValueError("impossible calibration")
