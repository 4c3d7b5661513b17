"""Which 'normal' training images look least normal, to models that did not train on them."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import median_abs_deviation
from sklearn.base import clone

from igd.data.groups import group_numbers
from igd.data.sources import Source, as_source
from igd.detector import IGD
from igd.errors import UserError
from igd.evaluation.overlay import overlay
from igd.evaluation.page import data_uri, thumbnail, write_page
from igd.files import atomic
from igd.inference.conformal import p_values
from igd.inference.predictor import Prediction
from igd.progress import Progress

SHOWN = 24  # most suspicious images whose pictures are kept
Floats = NDArray[np.float64]
Pictures = tuple[Image.Image, Image.Image]  # an image and its anomaly map, small


@dataclass(frozen=True)
class Audited:
    """A training image as a model saw it that did not train on it."""

    name: str
    score: float  # by the model of its fold
    p_value: float  # among the images that this model was calibrated with
    deviation: float  # what ranks: the score on a scale that the folds share
    fold: int  # the number of the model, from 1
    pictures: Pictures | None = None  # of the most suspicious only


def audit(
    images: Any, detector: IGD, folds: int = 3, seed: int = 0, progress: Progress | None = None
) -> list[Audited]:
    """Score every image by a model trained without it; the most suspicious first.

    The images are dealt into `folds` parts, those of one group into one; for each, a clone of
    `detector` learns from the others and scores this one.
    """
    source, progress = as_source(images), progress or Progress()
    parts = deal(group_numbers(source.groups, range(len(source))), folds, seed)
    audited = []
    for fold, held_out in enumerate(parts, start=1):
        audited += _audit_fold(
            source, held_out, detector, fold, _InFold(progress, f"{fold}/{folds}")
        )
    ranked = sorted(audited, key=lambda each: (-each.deviation, each.name))
    return [
        each if rank < SHOWN else replace(each, pictures=None) for rank, each in enumerate(ranked)
    ]


def deal(groups: NDArray[np.int64], folds: int, seed: int) -> list[NDArray[np.int64]]:
    """The numbers of the images in each fold, from the number of each one's group: every group in
    exactly one, by chance.
    """
    count = int(groups.max()) + 1
    if not 2 <= folds <= count:
        unit = "images" if count == len(groups) else "groups"
        raise UserError(f"folds is {folds}; with {count} {unit} it must lie between 2 and {count}")
    return [
        np.flatnonzero(np.isin(groups, part))
        for part in np.array_split(np.random.default_rng(seed).permutation(count), folds)
    ]


def _audit_fold(
    source: Source, held_out: NDArray[np.int64], detector: IGD, fold: int, progress: Progress
) -> list[Audited]:
    others = np.setdiff1d(np.arange(len(source)), held_out)
    model: IGD = clone(detector).fit(_subset(source, others), progress=progress)
    scores: dict[str, float] = {}
    pictures: dict[str, Pictures] = {}  # of the highest scores so far
    for prediction in model.predictions(
        _subset(source, held_out), progress=progress, keep_images=True
    ):
        if isinstance(prediction, UserError):
            if detector.strict:
                raise prediction
            progress.say(f"left out: {prediction}")
            continue
        scores[prediction.name] = prediction.score
        if len(pictures) < SHOWN or prediction.score > min(scores[name] for name in pictures):
            pictures[prediction.name] = _pictures(model, prediction)
        if len(pictures) > SHOWN:
            del pictures[min(pictures, key=lambda name: scores[name])]
    if not scores:
        return []
    values = np.array(list(scores.values()))
    calibration = np.asarray(model.calibration_.scores, dtype=np.float64)
    predicted = zip(
        scores, values, p_values(values, calibration), deviations(values, calibration), strict=True
    )
    return [
        Audited(name, float(score), float(p_value), float(deviation), fold, pictures.get(name))
        for name, score, p_value, deviation in predicted
    ]


def deviations(scores: Floats, calibration: Floats) -> Floats:
    """Scores on a scale that the folds share: from the median of all images the model did not train
    on, in deviations.

    Scores of two models differ in place and spread; this makes up for both, and median and median
    absolute deviation do not mind if a minority of the images is odd. The p-values alone would not
    do: there are few calibration images, some may be odd themselves, and beyond the rarest of them
    all p-values are equal. Nor would ranks within a fold, which call as many images suspicious in a
    fold without odd ones as in a fold with many.
    """
    unseen = np.concatenate([scores, calibration])
    spread = float(median_abs_deviation(unseen, scale="normal"))
    scaled: Floats = (scores - np.median(unseen)) / max(spread, np.finfo(np.float64).tiny)
    return scaled


def write_audit_table(path: Path, audited: list[Audited]) -> None:
    """A CSV file of all images, the most suspicious first."""
    with atomic(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["rank", "path", "score", "p_value", "deviation", "fold"])
        writer.writeheader()
        writer.writerows(rows(audited))


def rows(audited: list[Audited]) -> list[dict[str, Any]]:
    """What tables and JSON lines say of each image."""
    return [
        {
            "rank": rank,
            "path": each.name,
            "score": each.score,
            "p_value": each.p_value,
            "deviation": each.deviation,
            "fold": each.fold,
        }
        for rank, each in enumerate(audited, start=1)
    ]


def write_audit_page(path: Path, audited: list[Audited], title: str, subtitle: str) -> None:
    """A page with the most suspicious images and their anomaly maps."""
    cards = [
        {
            **row,
            "panels": list(zip(("image", "overlay"), map(data_uri, each.pictures), strict=True)),
        }
        for row, each in zip(rows(audited), audited, strict=True)
        if each.pictures
    ]
    write_page(path, "audit.html.j2", {"title": title, "subtitle": subtitle, "cards": cards})


def _pictures(model: IGD, prediction: Prediction) -> Pictures:
    assert prediction.image is not None
    coloured = overlay(
        prediction.image,
        prediction.map,
        model.background_level_,
        model.pixel_threshold_,
        model.geometry_.outside(*prediction.image.size, prediction.pose),
    )
    return thumbnail(prediction.image), thumbnail(coloured)


def _subset(source: Source, numbers: NDArray[np.int64]) -> Source:
    return replace(
        source,
        names=[source.names[n] for n in numbers],
        read=lambda n: source.read(int(numbers[n])),
        pixels=lambda n: source.pixels(int(numbers[n])),
        groups=source.groups and [source.groups[n] for n in numbers],
    )


class _InFold(Progress):
    """Shows what is done with the fold it is done in."""

    def __init__(self, progress: Progress, fold: str) -> None:
        self.progress, self.fold = progress, fold

    def start(self, total: int, doing: str, done: int = 0) -> None:
        self.progress.start(total, f"{self.fold} {doing}", done)

    def advance(self, count: int = 1, **figures: float) -> None:
        self.progress.advance(count, **figures)

    def finish(self) -> None:
        self.progress.finish()

    def say(self, message: str) -> None:
        self.progress.say(message)
