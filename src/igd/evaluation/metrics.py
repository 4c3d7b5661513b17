"""Metrics of detection and of localisation.

Pixel metrics are accumulated image by image in histograms of the map's values: memory does not grow
with the test set, and 2^16 thresholds are as good as all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

BINS = 2**16
FALSE_POSITIVES = 0.3  # AUPRO's limit
Floats = NDArray[np.float64]


def image_metrics(
    labels: NDArray[np.int64], scores: Floats, threshold: float
) -> dict[str, float | None]:
    """Detection: how well the score tells anomalous images (1) from normal ones (0), and what the
    threshold makes of it.

    A metric that compares the two kinds is None where one is missing; `why_undefined` says which.
    """
    anomalous, alarms = labels == 1, scores > threshold
    both = why_undefined(labels) is None
    return {
        "image_auroc": float(roc_auc_score(labels, scores)) if both else None,
        "average_precision": float(average_precision_score(labels, scores)) if both else None,
        "accuracy_at_half": float(((scores > 0.5) == anomalous).mean()),
        "f1_best": best_f1(labels, scores) if both else None,
        "f1_at_threshold": f1((alarms & anomalous).sum(), alarms.sum(), anomalous.sum())
        if both
        else None,
        "false_alarm_rate": float(alarms[~anomalous].mean()) if not anomalous.all() else None,
        "miss_rate": float(1 - alarms[anomalous].mean()) if anomalous.any() else None,
    }


def why_undefined(labels: NDArray[np.int64]) -> str | None:
    """Why metrics that compare normal and anomalous images can't be had; None where they can."""
    if 0 < labels.sum() < len(labels):
        return None
    only, other = ("anomalous", "normal") if labels.any() else ("normal", "anomalous")
    return (
        f"all {len(labels)} test images are {only}; AUROC, average precision and F1 need {other} "
        f"ones too"
    )


def best_f1(labels: NDArray[np.int64], scores: Floats) -> float:
    """F1 at the threshold that suits these very images best: an upper limit, not a promise."""
    precision, recall, _ = precision_recall_curve(labels, scores)
    return float((2 * precision * recall / np.maximum(precision + recall, 1e-12)).max())


def f1(found: float, alarms: float, anomalous: float) -> float:
    """2 TP / (alarms + anomalous): the harmonic mean of precision and recall, 0 where both are."""
    return float(2 * found / (alarms + anomalous))


@dataclass
class PixelMetrics:
    """Localisation, accumulated over test images whose anomalous pixels are known."""

    normal: Floats = field(default_factory=lambda: np.zeros(BINS))  # normal pixels with each value
    anomalous: Floats = field(default_factory=lambda: np.zeros(BINS))
    # Share of a region's pixels, summed over regions.
    regions: Floats = field(default_factory=lambda: np.zeros(BINS))
    region_count: int = 0
    image_aurocs: list[float] = field(default_factory=list)

    def add(
        self,
        anomaly_map: NDArray[np.float32],
        mask: NDArray[np.bool_],
        outside: NDArray[np.bool_] | None = None,
    ) -> None:
        """Take in an image's map, values in [0, 1], and the mask of its anomalous pixels; those
        outside of the region of interest are neither.
        """
        inside = np.ones_like(mask) if outside is None else ~outside
        normal_pixels, mask = ~mask & inside, mask & inside
        value = np.minimum((anomaly_map.astype(np.float64) * BINS).astype(np.int64), BINS - 1)
        normal = _histogram(value[normal_pixels])
        self.normal += normal
        if not mask.any():
            return
        anomalous = _histogram(value[mask])
        self.anomalous += anomalous
        if normal.any():
            self.image_aurocs.append(_auroc(normal, anomalous))
        labels, count = ndimage.label(mask, structure=np.ones((3, 3)))
        for region in range(1, count + 1):
            inside = value[labels == region]
            self.regions += _histogram(inside) / len(inside)
        self.region_count += count

    def results(self) -> dict[str, float | None]:
        """Pooled and per-image pixel AUROC, AUPRO and the best pixel F1; None where no image has a
        mask.
        """
        known = bool(self.anomalous.any() and self.normal.any())
        return {
            "pixel_auroc": _auroc(self.normal, self.anomalous) if known else None,
            "pixel_auroc_per_image": float(np.mean(self.image_aurocs))
            if self.image_aurocs
            else None,
            "aupro": self._aupro() if known else None,
            "pixel_f1_best": self._best_f1() if known else None,
        }

    def _aupro(self) -> float:
        """Mean overlap with the anomalous regions, over false-positive rates up to 30 %, scaled to
        [0, 1].
        """
        false_positives, overlap = _above(self.normal), _above(self.regions / self.region_count)
        at_limit = np.interp(FALSE_POSITIVES, false_positives, overlap)
        kept = false_positives < FALSE_POSITIVES
        x = np.append(false_positives[kept], FALSE_POSITIVES)
        y = np.append(overlap[kept], at_limit)
        return float(np.trapezoid(y, x) / FALSE_POSITIVES)

    def _best_f1(self) -> float:
        """F1 of the pixels of all images together, at the threshold that suits them best."""
        found = np.cumsum(self.anomalous[::-1])
        called = found + np.cumsum(self.normal[::-1])
        return float((2 * found / (called + found[-1])).max())


def _histogram(values: NDArray[np.int64]) -> Floats:
    return np.bincount(values, minlength=BINS).astype(np.float64)


def _above(counts: Floats) -> Floats:
    """Share of the counts at or above each threshold, from the highest threshold down, starting at
    0.
    """
    shares: Floats = np.concatenate([[0.0], np.cumsum(counts[::-1])]) / counts.sum()
    return shares


def _auroc(normal: Floats, anomalous: Floats) -> float:
    """Area under the ROC curve of two histograms; equal values count half."""
    return float(np.trapezoid(_above(anomalous), _above(normal)))
