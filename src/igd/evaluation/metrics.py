"""Metrics of detection and of localisation.

Pixel metrics are accumulated image by image in histograms of the map's values: memory does not grow with the test set, and
2^16 thresholds are as good as all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.metrics import average_precision_score, roc_auc_score

BINS = 2**16
FALSE_POSITIVES = 0.3  # AUPRO's limit
Floats = NDArray[np.float64]


def image_metrics(labels: NDArray[np.int64], scores: Floats) -> dict[str, float]:
    """Detection: how well the score tells anomalous images (1) from normal ones (0)."""
    return {
        "image_auroc": float(roc_auc_score(labels, scores)),
        "average_precision": float(average_precision_score(labels, scores)),
        "accuracy_at_half": float(((scores > 0.5) == labels).mean()),
    }


@dataclass
class PixelMetrics:
    """Localisation, accumulated over test images whose anomalous pixels are known."""

    normal: Floats = field(default_factory=lambda: np.zeros(BINS))  # normal pixels with each value
    anomalous: Floats = field(default_factory=lambda: np.zeros(BINS))
    regions: Floats = field(default_factory=lambda: np.zeros(BINS))  # share of a region's pixels, summed over regions
    region_count: int = 0
    image_aurocs: list[float] = field(default_factory=list)

    def add(self, heat: NDArray[np.float32], mask: NDArray[np.bool_]) -> None:
        """Take in an image's map, values in [0, 1], and the mask of its anomalous pixels."""
        value = np.minimum((heat.astype(np.float64) * BINS).astype(np.int64), BINS - 1)
        normal = _histogram(value[~mask])
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
        """Pooled and per-image pixel AUROC, and AUPRO; None where no image has a mask."""
        known = bool(self.anomalous.any() and self.normal.any())
        return {
            "pixel_auroc": _auroc(self.normal, self.anomalous) if known else None,
            "pixel_auroc_per_image": float(np.mean(self.image_aurocs)) if self.image_aurocs else None,
            "aupro": self._aupro() if known else None,
        }

    def _aupro(self) -> float:
        """Mean overlap with the anomalous regions, over false-positive rates up to 30 %, scaled to [0, 1]."""
        false_positives, overlap = _above(self.normal), _above(self.regions / self.region_count)
        at_limit = np.interp(FALSE_POSITIVES, false_positives, overlap)
        kept = false_positives < FALSE_POSITIVES
        x = np.append(false_positives[kept], FALSE_POSITIVES)
        y = np.append(overlap[kept], at_limit)
        return float(np.trapezoid(y, x) / FALSE_POSITIVES)


def _histogram(values: NDArray[np.int64]) -> Floats:
    return np.bincount(values, minlength=BINS).astype(np.float64)


def _above(counts: Floats) -> Floats:
    """Share of the counts at or above each threshold, from the highest threshold down, starting at 0."""
    shares: Floats = np.concatenate([[0.0], np.cumsum(counts[::-1])]) / counts.sum()
    return shares


def _auroc(normal: Floats, anomalous: Floats) -> float:
    """Area under the ROC curve of two histograms; equal values count half."""
    return float(np.trapezoid(_above(anomalous), _above(normal)))
