"""What an evaluation means for whoever acts on it: misses and false alarms in words, rates to
choose from, and what is wrong where something is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from igd.evaluation.confidence import Groups, Interval, mistake_interval
from igd.evaluation.metrics import Floats, best_f1, f1
from igd.inference.conformal import Calibration, rate_to_ask, smallest_rate, threshold

PROMISED = (0.01, 0.02, 0.05, 0.1, 0.2)  # rates of false alarms to choose from
SHOWN_UP_TO = 0.3  # promised rate, in the curve
FAR = 0.1  # from the best possible F1
UNLIKELY = 0.05  # chance below which a difference is not put down to chance

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """What a promised rate makes of the test images; None: more calibration images are needed."""

    promised: float
    threshold: float | None
    misses: int | None
    false_alarms: int | None
    f1: float | None


def choices(
    labels: Labels,
    scores: Floats,
    calibration: Calibration,
    rates: tuple[float, ...] = PROMISED,
) -> list[Choice]:
    """Misses and realised false alarms at each promised rate."""
    return [_choice(labels, scores, calibration, rate) for rate in rates]


def possible_rates(calibration: Calibration) -> tuple[float, ...]:
    """The rates at which the threshold changes, for a curve."""
    count = len(calibration.scores)
    most = max(1, math.floor(SHOWN_UP_TO * (count + 1)))
    steps = np.unique(np.linspace(1, most, min(most, 60)).round().astype(int))
    return tuple(float(step) / (count + 1) for step in steps)


def in_numbers(
    labels: Labels, scores: Floats, calibration: Calibration, groups: Groups | None = None
) -> dict[str, Any]:
    """Counts at the threshold, the choices and the sentences, as `evaluate --json` has them."""
    alarms = scores > calibration.threshold
    return {
        "misses": int((~alarms & (labels == 1)).sum()),
        "false_alarms": int((alarms & (labels == 0)).sum()),
        "at_promised_rates": [asdict(each) for each in choices(labels, scores, calibration)],
        "summary": [
            *_at_threshold(labels, scores, calibration, groups),
            *comments(labels, scores, calibration, groups),
        ],
    }


def comments(
    labels: Labels, scores: Floats, calibration: Calibration, groups: Groups | None = None
) -> list[str]:
    """What needs a reader's attention: nothing, more false alarms than promised, or a threshold
    that is far from the best.
    """
    return [
        *_above_promise(labels, scores, calibration, groups),
        *_far_from_best(labels, scores, calibration),
    ]


def chance_of_so_many(false_alarms: int, normal: int, calibration: Calibration) -> float:
    """How likely at least so many false alarms are where the promise holds: beta-binomial, as
    calibration and test images are both drawn.
    """
    count = len(calibration.scores)
    allowed = math.floor(calibration.false_alarm_rate * (count + 1) + 1e-9)
    return float(betabinom.sf(false_alarms - 1, normal, allowed, count + 1 - allowed))


def percent(share: float) -> str:
    """
    >>> percent(0.075)
    '7.5 %'
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def counted(count: int, total: int, what: str, interval: Interval) -> str:
    """A rate in words, with the interval it may lie in.

    >>> counted(0, 20, "defects are missed", (0, 0.168))
    '0 of 20 defects are missed (0 %; 95 % interval: 0 % to 16.8 %)'
    """
    low, high = interval
    return (
        f"{count} of {total} {what} ({percent(count / total)}; 95 % interval: {percent(low)} to "
        f"{percent(high)})"
    )


def as_table(chosen: list[dict[str, Any]], n_normal: int, n_anomalous: int) -> list[list[str]]:
    """The choices as rows of text, under promised rate, threshold, misses and false alarms."""
    rows = []
    for each in chosen:
        if each["threshold"] is None:
            needed = math.ceil(1 / each["promised"]) - 1
            rows.append([percent(each["promised"]), f"needs {needed} calibration images", "", ""])
            continue
        rows.append(
            [
                percent(each["promised"]),
                f"{each['threshold']:.4f}",
                f"{each['misses']} of {n_anomalous}" if n_anomalous else "-",
                f"{each['false_alarms']} of {n_normal}" if n_normal else "-",
            ]
        )
    return rows


def _choice(labels: Labels, scores: Floats, calibration: Calibration, rate: float) -> Choice:
    if rate < smallest_rate(len(calibration.scores)) - 1e-9:
        return Choice(rate, None, None, None, None)
    limit = threshold(calibration.scores, rate)
    alarms, anomalous = scores > limit, labels == 1
    found = int((alarms & anomalous).sum())
    return Choice(
        rate,
        limit,
        int(anomalous.sum()) - found,
        int(alarms.sum()) - found,
        f1(found, alarms.sum(), anomalous.sum()) if anomalous.any() else None,
    )


def _at_threshold(
    labels: Labels, scores: Floats, calibration: Calibration, groups: Groups | None
) -> list[str]:
    alarms, normal, anomalous = scores > calibration.threshold, labels == 0, labels == 1
    told = []
    if anomalous.any():
        missed = int((~alarms & anomalous).sum())
        interval = mistake_interval(~alarms, anomalous, groups)
        told.append(counted(missed, int(anomalous.sum()), "defects are missed", interval))
    if normal.any():
        wrong = int((alarms & normal).sum())
        interval = mistake_interval(alarms, normal, groups)
        told.append(
            counted(wrong, int(normal.sum()), "normal images are false alarms", interval)
            + f"; at most {percent(calibration.false_alarm_rate)} were promised"
        )
    return told


def _above_promise(
    labels: Labels, scores: Floats, calibration: Calibration, groups: Groups | None
) -> list[str]:
    """Where groups are known, each counts as one image, with the share of its false alarms: a mean
    varies less than a draw.
    """
    normal = scores[labels == 0] > calibration.threshold
    wrong, counted_wrong, independent = int(normal.sum()), int(normal.sum()), len(normal)
    if groups is not None and wrong:
        _, group, sizes = np.unique(groups[labels == 0], return_inverse=True, return_counts=True)
        independent = len(sizes)
        counted_wrong = math.floor(float((np.bincount(group, normal) / sizes).sum()) + 1e-9)
    if not wrong or chance_of_so_many(counted_wrong, independent, calibration) >= UNLIKELY:
        return []
    return [
        f"the promise does not hold here: {percent(wrong / len(normal))} false alarms instead of "
        f"{percent(calibration.false_alarm_rate)} are more than chance explains. These images "
        "differ from those that set the threshold (light, camera, batch, patients?), or those "
        "were near copies of what was learnt; calibrate with normal images taken as these were"
    ]


def _far_from_best(labels: Labels, scores: Floats, calibration: Calibration) -> list[str]:
    """Where F1 at the threshold is far below the best possible: why, and the way out."""
    if not 0 < labels.sum() < len(labels):
        return []
    here = _choice(labels, scores, calibration, calibration.false_alarm_rate)
    best = best_f1(labels, scores)
    if here.f1 is None or best - here.f1 <= FAR:
        return []
    rates = (*PROMISED, *possible_rates(calibration))
    offered = [each for each in choices(labels, scores, calibration, rates) if each.f1 is not None]
    better = max(offered, key=lambda each: (each.f1, -each.promised))
    assert here.misses is not None
    assert here.false_alarms is not None
    too_high = here.misses > here.false_alarms
    told = (
        f"F1 is {here.f1:.2f} at the threshold and {best:.2f} at the one that suits these images "
        f"best: the threshold is too {'high' if too_high else 'low'} for them"
    )
    if better.f1 is not None and better.f1 > here.f1 + FAR / 2:
        told += (
            f". A promised rate of {percent(better.promised)} instead of "
            f"{percent(here.promised)} would miss {better.misses} instead of {here.misses} and "
            f"raise {better.false_alarms} false alarms instead of {here.false_alarms} "
            f"(--max-false-alarms {rate_to_ask(better.promised)})"
        )
    elif too_high:
        told += ", and no rate up to 30 % helps; try other scales or a larger --image-size"
    else:
        told += ", and no rate helps; calibrate with normal images taken as these were"
    return [told]
