"""How sure a metric is: what it might have been, had other test images been drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.stats import beta
from scipy.stats import t as student

from igd.evaluation.metrics import Floats

CONFIDENCE = 0.95
RESAMPLES = 1000
COUNTED_AT_ONCE = 2**20  # resampled images; bounds memory

Interval = tuple[float, float]
Groups = NDArray[np.int64]  # the number of each image's group, from 0


def ranking_intervals(
    labels: NDArray[np.int64],
    scores: Floats,
    groups: Groups | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Interval]:
    """Bootstrap intervals of image AUROC and average precision: percentiles over resampled test
    sets.

    Normal and anomalous images are resampled apart, so that every resample has both. Images of one
    group, such as a patient's, are drawn together: groups of normal images, of anomalous ones and
    of both are resampled apart. A ranking without a mistake has none in any resample either: its
    interval is the point 1, however few the images.
    """
    aurocs, precisions = _bootstrapped(labels, scores, groups, resamples, seed)
    return {"image_auroc": _percentiles(aurocs), "average_precision": _percentiles(precisions)}


def auroc_difference(
    labels: NDArray[np.int64],
    ours: Floats,
    theirs: Floats,
    groups: Groups | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Paired bootstrap interval of how much higher the AUROC of `ours` is: every resample holds the
    same images for both, so that what is hard for both costs neither.
    """
    one, other = (
        _bootstrapped(labels, scores, groups, resamples, seed)[0] for scores in (ours, theirs)
    )
    return _percentiles(one - other)


def _bootstrapped(
    labels: NDArray[np.int64], scores: Floats, groups: Groups | None, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """AUROC and average precision of resampled test sets. Which images are drawn depends on the
    labels, the groups and the seed alone, not on the scores.
    """
    groups = np.arange(len(labels)) if groups is None else groups
    levels, level = np.unique(-scores, return_inverse=True)  # from the highest score
    shape = (int(groups.max()) + 1, len(levels))
    counts = [
        csr_matrix((np.ones(kind.sum(), np.float32), (groups[kind], level[kind])), shape)
        for kind in (labels == 0, labels == 1)
    ]
    rng = np.random.default_rng(seed)
    rows = max(1, COUNTED_AT_ONCE // len(labels))
    drawn = (
        sum(
            (_drawn(stratum, shape[0], some, rng) for stratum in _strata(labels, groups)),
            np.zeros((some, shape[0]), np.float32),
        )
        for some in (min(rows, resamples - start) for start in range(0, resamples, rows))
    )
    rankings = (_rankings(*((each.T @ times.T).T for each in counts)) for times in drawn)
    aurocs, precisions = (np.concatenate(part) for part in zip(*rankings, strict=True))
    return aurocs, precisions


def _strata(labels: NDArray[np.int64], groups: Groups) -> list[Groups]:
    """Groups of normal images alone, of anomalous ones alone, and of both."""
    normal, anomalous = np.unique(groups[labels == 0]), np.unique(groups[labels == 1])
    strata = [
        np.setdiff1d(normal, anomalous),
        np.setdiff1d(anomalous, normal),
        np.intersect1d(normal, anomalous),
    ]
    return [stratum for stratum in strata if len(stratum)]


def _drawn(stratum: Groups, count: int, rows: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Resamples of these groups, as how often each of `count` is drawn: (rows, count)."""
    picked = stratum[rng.integers(len(stratum), size=(rows, len(stratum)), dtype=np.int32)]
    picked = picked + np.arange(rows)[:, None] * count
    times = np.bincount(picked.ravel(), minlength=rows * count)
    return times.reshape(rows, count).astype(np.float32)


def rate_interval(count: int, total: int) -> Interval:
    """Exact (Clopper-Pearson) interval of a rate of which `count` of `total` were seen.

    Not a bootstrap: that would call a rate of 0 of 20 certain.

    >>> low, high = rate_interval(0, 20)
    >>> low, round(high, 3)
    (0.0, 0.168)
    """
    return _exact(count, total)


def mistake_interval(
    wrong: NDArray[np.bool_], kind: NDArray[np.bool_], groups: Groups | None
) -> Interval:
    """Interval of the rate of mistakes among images of a kind, by group where there are groups."""
    mistakes = wrong[kind]
    if groups is None:
        return rate_interval(int(mistakes.sum()), len(mistakes))
    return grouped_rate_interval(mistakes, groups[kind])


def grouped_rate_interval(mistakes: NDArray[np.bool_], groups: Groups) -> Interval:
    """Interval of a rate where images of one group resemble each other: Clopper and Pearson's for
    as many independent images as the groups are worth (Korn and Graubard, 1998).

    Where none or all are mistakes nothing tells how alike the images of a group are, and each group
    counts as one image.

    >>> low, high = grouped_rate_interval(np.zeros(80, bool), np.repeat(np.arange(20), 4))
    >>> low, round(high, 3)
    (0.0, 0.168)
    """
    total, rate = len(mistakes), float(mistakes.mean())
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max()) + 1
    worth = float(count)
    if 0 < rate < 1 and count > 1:
        excess = np.bincount(group, mistakes - rate)
        variance = count / (count - 1) * float((excess**2).sum()) / total**2
        tail = (1 - CONFIDENCE) / 2
        narrower = float((student.ppf(tail, total - 1) / student.ppf(tail, count - 1)) ** 2)
        worth = rate * (1 - rate) / variance * narrower if variance else total
        worth = min(max(worth, 1.0), float(total))
    return _exact(rate * worth, worth)


def _exact(count: float, total: float) -> Interval:
    """Clopper and Pearson's interval, for numbers that need not be whole."""
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, count, total - count + 1) if count > 0 else 0.0
    high = beta.ppf(1 - tail, count + 1, total - count) if count < total else 1.0
    return float(low), float(high)


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
