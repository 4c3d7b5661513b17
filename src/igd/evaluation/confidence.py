"""How sure a metric is: what it might have been, had other test images been drawn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from igd.evaluation.metrics import Floats

CONFIDENCE = 0.95
RESAMPLES = 1000
COUNTED_AT_ONCE = 2**20  # resampled images; bounds memory

Interval = tuple[float, float]


def ranking_intervals(
    labels: NDArray[np.int64], scores: Floats, *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Interval]:
    """Bootstrap intervals of image AUROC and average precision: percentiles over resampled test
    sets.

    Normal and anomalous images are resampled apart, so that every resample has as many of each as
    the test set. A ranking without a mistake has none in any resample either: its interval is the
    point 1, however few the images.
    """
    aurocs, precisions = _bootstrapped(labels, scores, resamples, seed)
    return {"image_auroc": _percentiles(aurocs), "average_precision": _percentiles(precisions)}


def auroc_difference(
    labels: NDArray[np.int64],
    ours: Floats,
    theirs: Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Paired bootstrap interval of how much higher the AUROC of `ours` is: every resample holds the
    same images for both, so that what is hard for both costs neither.
    """
    one, other = (_bootstrapped(labels, scores, resamples, seed)[0] for scores in (ours, theirs))
    return _percentiles(one - other)


def _bootstrapped(
    labels: NDArray[np.int64], scores: Floats, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """AUROC and average precision of resampled test sets. Which images are drawn depends on the
    labels and the seed alone, not on the scores.
    """
    levels, level = np.unique(scores, return_inverse=True)
    rng = np.random.default_rng(seed)
    rows = max(1, COUNTED_AT_ONCE // len(labels))
    drawn = zip(
        _resampled(level[labels == 0], len(levels), resamples, rows, rng),
        _resampled(level[labels == 1], len(levels), resamples, rows, rng),
        strict=True,
    )
    aurocs, precisions = (
        np.concatenate(part) for part in zip(*(_rankings(*pair) for pair in drawn), strict=True)
    )
    return aurocs, precisions


def rate_interval(count: int, total: int) -> Interval:
    """Exact (Clopper-Pearson) interval of a rate of which `count` of `total` were seen.

    Not a bootstrap: that would call a rate of 0 of 20 certain.

    >>> low, high = rate_interval(0, 20)
    >>> low, round(high, 3)
    (0.0, 0.168)
    """
    exact = binomtest(count, total).proportion_ci(CONFIDENCE, "exact")
    return float(exact.low), float(exact.high)


def _resampled(
    level: NDArray[np.int64], levels: int, resamples: int, rows: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float32]]:
    """Resamples of images, some at a time, as how many have each score, from the highest: (rows,
    levels).
    """
    descending = (levels - 1 - level).astype(np.int32)
    for start in range(0, resamples, rows):
        some = min(rows, resamples - start)
        picked = descending[rng.integers(len(level), size=(some, len(level)), dtype=np.int32)]
        picked += np.arange(some, dtype=np.int32)[:, None] * levels
        yield (
            np.bincount(picked.ravel(), minlength=some * levels)
            .reshape(some, levels)
            .astype(np.float32)
        )


def _rankings(normal: NDArray[np.float32], anomalous: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """AUROC and average precision of each row of counts by descending score; equal scores count
    half in the AUROC.
    """
    false_alarms, found = np.cumsum(normal, axis=1), np.cumsum(anomalous, axis=1)
    normals, anomalies = false_alarms[:, -1], found[:, -1]
    lower = normals[:, None] - false_alarms + normal / 2
    area = np.einsum("ij,ij->i", anomalous, lower, dtype=np.float64) / normals / anomalies
    precision = found / np.maximum(found + false_alarms, 1)
    average = np.einsum("ij,ij->i", anomalous, precision, dtype=np.float64) / anomalies
    return area, average


def _percentiles(values: Floats) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
