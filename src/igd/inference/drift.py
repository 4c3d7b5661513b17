"""Do incoming images still look like those that calibrated the model? A running test.

Each image's score is ranked among the calibration images *and* all images before it. If all of
these are exchangeable, such ranks are independent and uniform, however few calibration images there
are (Vovk et al., 2003); p-values from the calibration images alone are not, as one set of them
stands behind all. A bet on low ranks, 3/2 - p, has the mean 1 then, and the sum of all bets that
might have begun at some image, R = (R + 1) (3/2 - p) (Shiryaev and Roberts), has the mean t after t
images: the chance that it reaches `LIMIT` within t images is at most t / LIMIT, and it takes at
least LIMIT images in the mean.

One bet, and one on low ranks alone. Cross-fitted calibration images score slightly higher than new
ones, which must not count; and this bet loses where fewer than a tenth of the images are defects
among good ones, and wins where more are.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from igd.inference.conformal import Calibration

LIMIT = 100_000.0  # images, on average at least, until a notice without cause
WINDOW = 200  # images that the share of alarms is told of
BINS = 2**14  # of scores in [0, 1]; ties are broken at random, so that any number is right


class DriftMonitor:
    """Watches the scores of one model, one after another; memory does not grow."""

    def __init__(self, calibration: Calibration, limit: float = LIMIT) -> None:
        self.promised, self.limit = calibration.false_alarm_rate, limit
        self.images = 0  # seen
        self.evidence = 0.0  # Shiryaev and Roberts' R
        self.noticed_at: int | None = None  # the image with which the evidence reached its limit
        self._counts = np.bincount(_bins(calibration.scores), minlength=BINS)
        self._total = len(calibration.scores)
        self._alarms: deque[bool] = deque(maxlen=WINDOW)
        self._rng = np.random.default_rng(0)

    def update(self, score: float, is_anomalous: bool) -> bool:
        """Take an image's score; true with the one that makes the drift noticed."""
        self.images += 1
        self._alarms.append(is_anomalous)
        self.evidence = min((self.evidence + 1) * (1.5 - self._rank(score)), 1e300)
        if self.noticed_at is not None or self.evidence < self.limit:
            return False
        self.noticed_at = self.images
        return True

    @property
    def alarm_share(self) -> float:
        """Of the last `WINDOW` images."""
        return sum(self._alarms) / max(1, len(self._alarms))

    @property
    def notice(self) -> str | None:
        """What to tell people, as long as there is cause."""
        if self.noticed_at is None:
            return None
        return (
            f"incoming images no longer look like the calibration images: of the last "
            f"{len(self._alarms)} images {self.alarm_share:.0%} are alarms, "
            f"{100 * self.promised:.2g}% were promised: many defects, or has the light or the "
            f"camera changed? (igd calibrate)"
        )

    def _rank(self, score: float) -> float:
        """The share of all images so far, this one among them, that score at least as high; those
        of its own bin count in part, at random: uniform, if all are exchangeable.
        """
        own = int(_bins(np.array([score]))[0])
        self._counts[own] += 1
        self._total += 1
        above = int(self._counts[own + 1 :].sum())
        return float((above + self._rng.random() * self._counts[own]) / self._total)


def _bins(scores: ArrayLike) -> NDArray[np.int64]:
    values = np.asarray(scores, dtype=np.float64)
    return np.clip((values * BINS).astype(np.int64), 0, BINS - 1)
