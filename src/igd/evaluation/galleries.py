"""Test images beside their overlays and maps, a gallery for each kind of defect: mistakes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from igd.data.alignment import Pose
from igd.data.sample import Sample, UnusableMask
from igd.evaluation.evaluate import ScoredSample
from igd.evaluation.overlay import coloured_map, overlay, with_truth
from igd.evaluation.page import THUMBNAIL, data_uri
from igd.inference.predictor import Prediction, Predictor
from igd.inference.regions import Mask, outlined

SHOWN = 6  # images of a kind at most
LEAST = 2  # of a kind, where there are so many kinds that not all can have more
MOST = 60  # images of all kinds together: with three pictures each, a few megabytes


@dataclass(frozen=True)
class Group:
    """Test images of one kind: where the detector was wrong, and where it was right."""

    kind: str
    label: int
    mistakes: list[ScoredSample]  # the worst first
    right: list[ScoredSample]

    @property
    def error_rate(self) -> float:
        return len(self.mistakes) / (len(self.mistakes) + len(self.right))

    def chosen(self, most: int) -> list[ScoredSample]:
        """Mistakes first; what is right is spread over its scores, and is shown too if there is
        any.
        """
        kept = min(len(self.right), max(most - len(self.mistakes), most // 3))
        return [*self.mistakes[: most - kept], *_spread(self.right, kept)]

    def told(self, shown: list[ScoredSample]) -> str:
        """How many of how many images are shown."""
        wrong, right = ("missed", "found") if self.label else ("false alarms", "called normal")
        mistaken = sum(each.is_anomalous != self.label for each in shown)
        total, rightly = len(self.mistakes) + len(self.right), len(shown) - mistaken
        return (
            f"{_share(len(shown), total)} image{'s' * (total != 1)} shown: "
            f"{_share(mistaken, len(self.mistakes))} {wrong}, "
            f"{_share(rightly, len(self.right))} {right}."
        )


def _share(shown: int, total: int) -> str:
    return f"{shown} of {total}" if total else "none"


def kinds_of(predicted: list[ScoredSample]) -> list[str]:
    """Normal kinds first, then by name."""
    labels = {each.sample.kind: each.sample.label for each in predicted}
    return sorted(labels, key=lambda kind: (labels[kind], kind))


def galleries(detector: Predictor, predicted: list[ScoredSample]) -> dict[str, Any]:
    """What the page shows: `galleries`, those of defects by their share of misses, then that of
    normal images; `not_shown`, kinds that there are too many of; `has_truth`, whether a
    ground-truth mask is drawn.
    """
    groups = grouped(predicted)
    shown_groups = [*groups[: MOST // LEAST - 1], *groups[MOST // LEAST - 1 :][-1:]]
    most = max(LEAST, min(SHOWN, MOST // max(len(shown_groups), 1)))
    numbers, shown, has_truth = count(1), [], False
    for group in shown_groups:
        chosen = group.chosen(most)
        cards = [_card(detector, each, next(numbers)) for each in chosen]
        has_truth = has_truth or any(card["has_truth"] for card in cards)
        shown.append(
            {
                "kind": group.kind,
                "is_defect": bool(group.label),
                "told": group.told(chosen),
                "cards": cards,
            }
        )
    return {
        "galleries": shown,
        "not_shown": [group.kind for group in groups if group not in shown_groups],
        "has_truth": has_truth,
    }


def grouped(predicted: list[ScoredSample]) -> list[Group]:
    """Kinds of defects, those that are missed most first; then all normal images."""
    kinds = sorted({each.sample.kind for each in predicted if each.sample.label})
    defects = [
        _group(
            kind,
            1,
            [each for each in predicted if (each.sample.kind, each.sample.label) == (kind, 1)],
        )
        for kind in kinds
    ]
    normal = [each for each in predicted if not each.sample.label]
    return [
        *sorted(defects, key=lambda group: -group.error_rate),
        *([_group("normal", 0, normal)] if normal else []),
    ]


def _group(kind: str, label: int, predicted: list[ScoredSample]) -> Group:
    """The lowest scores of defects and the highest of normal images are the worst mistakes."""
    ranked = sorted(predicted, key=lambda each: each.score, reverse=not label)
    return Group(
        kind,
        label,
        [each for each in ranked if each.is_anomalous != label],
        [each for each in ranked if each.is_anomalous == label],
    )


def _spread(predicted: Sequence[ScoredSample], number: int) -> list[ScoredSample]:
    """So many of them, from the first to the last in equal steps."""
    places = np.linspace(0, len(predicted) - 1, number).round().astype(int)
    return [predicted[place] for place in places]


def _card(detector: Predictor, predicted: ScoredSample, number: int) -> dict[str, Any]:
    image = predicted.sample.read()
    prediction = detector.predict(np.asarray(image))
    assert isinstance(prediction, Prediction)
    mask = _mask(predicted.sample, image)
    pictures = zip(
        ("image", "overlay", "map"), _pictures(detector, image, prediction, mask), strict=True
    )
    verdicts = ("normal", "false alarm"), ("missed", "found")
    return {
        "number": number,
        "name": "/".join(Path(predicted.sample.identifier).parts[-2:]),
        "score": predicted.score,
        "p_value": predicted.p_value,
        "verdict": verdicts[predicted.sample.label][predicted.is_anomalous],
        "is_right": predicted.is_anomalous == predicted.sample.label,
        "is_elsewhere": mask is not None
        and is_elsewhere(
            outlined(prediction.map, detector.background_level_, detector.pixel_threshold_), mask
        ),
        "has_truth": mask is not None,
        "panels": [(name, data_uri(picture)) for name, picture in pictures],
    }


def _pictures(
    detector: Predictor, image: Image.Image, prediction: Prediction, mask: Mask | None
) -> Iterator[Image.Image]:
    """The image as it is; its overlay and its map, with the ground truth where it is known."""
    limits = detector.background_level_, detector.pixel_threshold_
    yield image
    # Lines are drawn on pixels as fine as those that are shown, not on a small image's own.
    factor = max(1, THUMBNAIL // max(image.size))
    size = image.width * factor, image.height * factor
    anomaly_map = np.asarray(
        Image.fromarray(prediction.map).resize(size, Image.Resampling.BILINEAR)
    )
    truth = None if mask is None else mask.repeat(factor, axis=0).repeat(factor, axis=1)
    outside = detector.geometry_.outside(*size, _enlarged(prediction.pose, factor))
    for picture in (
        overlay(image.resize(size), anomaly_map, *limits, outside),
        coloured_map(anomaly_map, *limits, outside),
    ):
        yield picture if truth is None else with_truth(picture, truth)


def _enlarged(pose: Pose | None, factor: int) -> Pose | None:
    return pose and Pose(pose.x * factor, pose.y * factor, pose.angle)


def is_elsewhere(marked: Mask, truth: Mask) -> bool:
    """Whether something is outlined, but nothing of the defect: an alarm may have another cause."""
    return bool(marked.any()) and not (marked & truth).any()


def _mask(sample: Sample, image: Image.Image) -> Mask | None:
    """Where the defect is, if it is known."""
    try:
        mask = sample.read_mask(image.size)
    except UnusableMask:
        return None
    return mask if mask is not None and mask.any() else None
