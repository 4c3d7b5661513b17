"""A detector on labelled test images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd.data.groups import group_numbers
from igd.data.sample import Sample, UnusableMask, groups_of
from igd.data.sources import as_source
from igd.errors import UserError
from igd.evaluation.confidence import Groups, Interval, mistake_interval, ranking_intervals
from igd.evaluation.metrics import Floats, PixelMetrics, image_metrics, why_undefined
from igd.evaluation.summary import in_numbers
from igd.inference.mismatch import check_mismatch, counted_lines
from igd.inference.predictor import Prediction, Predictor
from igd.progress import Progress

NAMED = 3  # masks that can't be used, and are named


@dataclass(frozen=True)
class ScoredSample:
    """A test image and what the detector said about it, without the map."""

    sample: Sample
    score: float
    p_value: float
    is_anomalous: bool
    terms: dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a detector on a test set, and its prediction for each image."""

    metrics: dict[str, Any]
    predicted: list[ScoredSample]


def evaluate(
    detector: Predictor,
    samples: list[Sample],
    progress: Progress | None = None,
    strict: bool = False,
) -> Evaluation:
    """Score every test image once; metrics of localisation come from those whose mask is known.
    Where samples have groups, intervals respect them. If `strict`, images that differ from those
    that the detector learnt from are refused.
    """
    progress, source = progress or Progress(), as_source(samples)
    differing, masks = Counter[str](), _Masks(detector, samples)
    predicted = []
    for sample, prediction in zip(
        samples, detector.predictions(source, progress=progress), strict=True
    ):
        if isinstance(prediction, UserError):
            raise prediction
        if strict:
            check_mismatch(sample.identifier, prediction.mismatches)
        differing.update(prediction.mismatches)
        masks.compare(sample, prediction)
        said = (prediction.score, prediction.p_value, prediction.is_anomalous, prediction.terms)
        predicted.append(ScoredSample(sample, *said))
    for line in (*counted_lines(differing, len(samples)), *masks.remarks()):
        progress.say(line)
    return Evaluation(_metrics(detector, samples, predicted, masks), predicted)


class _Masks:
    """Anomaly maps beside the masks of test images, and the masks that can't be used."""

    def __init__(self, detector: Predictor, samples: list[Sample]) -> None:
        self.geometry = detector.geometry_
        self.pixels = PixelMetrics()
        self.unusable = _missing_masks(samples)
        self.beyond = 0  # defects outside of the region of interest

    def compare(self, sample: Sample, prediction: Prediction) -> None:
        height, width = prediction.map.shape
        try:
            mask = sample.read_mask((width, height))
        except UnusableMask as error:
            self.unusable[sample.identifier] = str(error)
            return
        if mask is not None:
            outside = self.geometry.outside(width, height, prediction.pose)
            self.pixels.add(prediction.map, mask, outside)
            self.beyond += bool(mask.any()) and outside is not None and bool(outside[mask].all())

    def remarks(self) -> Iterator[str]:
        if self.beyond:
            yield (
                f"{self.beyond} anomalous images have their defect outside of the region of "
                f"interest: it can't be found, and counts as missed where nothing else is"
            )
        if self.unusable:
            yield _told(self.unusable)


def _metrics(
    detector: Predictor, samples: list[Sample], predicted: list[ScoredSample], masks: _Masks
) -> dict[str, Any]:
    labels = np.array([each.sample.label for each in predicted])
    scores = np.array([each.score for each in predicted])
    groups, reason = sample_groups(samples), why_undefined(labels)
    return {
        **image_metrics(labels, scores, detector.threshold_),
        **masks.pixels.results(),
        "n_normal": int((labels == 0).sum()),
        "n_anomalous": int(labels.sum()),
        "n_masks": sum(
            sample.mask is not None and sample.identifier not in masks.unusable
            for sample in samples
        ),
        **({} if detector.geometry_.roi is None else {"n_outside_roi": masks.beyond}),
        **({} if groups is None else {"n_groups": int(groups.max()) + 1}),
        "promised_false_alarm_rate": detector.false_alarm_rate_,
        "intervals_95": _intervals(labels, scores, detector.threshold_, groups),
        **in_numbers(labels, scores, detector.calibration_, groups),
        **({} if reason is None else {"undefined": reason}),
    }


def sample_groups(samples: list[Sample]) -> Groups | None:
    """The number of each sample's group, or None where they have none."""
    groups = groups_of(samples)
    return None if groups is None else group_numbers(groups, range(len(samples)))


def _missing_masks(samples: list[Sample]) -> dict[str, str]:
    """Anomalous images without a mask where others of their kind have one, and what to say."""
    anomalous = [sample for sample in samples if sample.label]
    masked = Counter(sample.kind for sample in anomalous if sample.mask is not None)
    return {
        sample.identifier: f"{sample.identifier}: has none, {masked[sample.kind]} others of kind "
        f"{sample.kind!r} do"
        for sample in anomalous
        if sample.mask is None and masked[sample.kind]
    }


def _told(unusable: dict[str, str]) -> str:
    """One line about all images whose defects may be anywhere."""
    listed = list(unusable.values())
    more = f"; and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return (
        f"{len(listed)} mask{'s are' if len(listed) > 1 else ' is'} missing or can't be used, and "
        f"pixel metrics leave the image out: {'; '.join(listed[:NAMED])}{more}"
    )


def _intervals(
    labels: NDArray[np.int64], scores: Floats, threshold: float, groups: Groups | None
) -> dict[str, Interval]:
    """95 % confidence intervals of the image metrics that are defined.

    Pixel metrics have none: a histogram of 2^16 values for each image would be needed to resample
    images.
    """
    intervals = {} if why_undefined(labels) else ranking_intervals(labels, scores, groups)
    alarms = scores > threshold
    for name, kind, wrong in (("false_alarm_rate", 0, alarms), ("miss_rate", 1, ~alarms)):
        if (labels == kind).any():
            intervals[name] = mistake_interval(wrong, labels == kind, groups)
    return intervals
