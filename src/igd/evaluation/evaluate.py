"""A detector on labelled test images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from igd.data.samples import Sample
from igd.data.sources import as_source
from igd.detector import IGD
from igd.errors import UserError
from igd.evaluation.metrics import PixelMetrics, image_metrics
from igd.progress import Progress


@dataclass(frozen=True)
class Judged:
    """A test image and what the detector said about it, without the map."""

    sample: Sample
    score: float
    p_value: float
    is_anomalous: bool
    terms: dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a detector on a test set, and its judgement of each image."""

    metrics: dict[str, Any]
    judged: list[Judged]


def evaluate(detector: IGD, samples: list[Sample], progress: Progress | None = None) -> Evaluation:
    """Score every test image once; metrics of localisation come from those whose mask is known."""
    judged, pixels = [], PixelMetrics()
    source = as_source(samples)
    for sample, prediction in zip(samples, detector.predictions(source, progress=progress), strict=True):
        if isinstance(prediction, UserError):
            raise prediction
        judged.append(Judged(sample, prediction.score, prediction.p_value, prediction.is_anomalous, prediction.terms))
        height, width = prediction.map.shape
        mask = sample.read_mask((width, height))
        if mask is not None:
            pixels.add(prediction.map, mask)
    labels = np.array([each.sample.label for each in judged])
    scores = np.array([each.score for each in judged])
    metrics = {
        **image_metrics(labels, scores),
        **pixels.results(),
        "n_normal": int((labels == 0).sum()),
        "n_anomalous": int(labels.sum()),
        "n_masks": sum(sample.mask is not None for sample in samples),
        "false_alarm_rate": float(np.mean([each.is_anomalous for each in judged if not each.sample.label])),
        "miss_rate": float(np.mean([not each.is_anomalous for each in judged if each.sample.label])),
        "promised_false_alarm_rate": detector.false_alarm_rate_,
    }
    return Evaluation(metrics, judged)
