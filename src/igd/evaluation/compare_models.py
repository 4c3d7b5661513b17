"""Two models on the same labelled images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from igd.data.sample import Sample
from igd.evaluation.confidence import Interval, auroc_difference
from igd.evaluation.evaluate import Evaluation, ScoredSample, evaluate, sample_groups
from igd.evaluation.metrics import why_undefined
from igd.inference.predictor import Predictor
from igd.progress import Progress


@dataclass(frozen=True)
class ModelComparison:
    """What two models say of one test set."""

    first: Evaluation
    second: Evaluation
    # How much higher the second's AUROC is, and its 95 % interval; None where there is none.
    difference: float | None
    interval: Interval | None

    @property
    def differing(self) -> list[tuple[ScoredSample, ScoredSample]]:
        """Images that one calls anomalous and the other does not."""
        pairs = zip(self.first.predicted, self.second.predicted, strict=True)
        return [(one, other) for one, other in pairs if one.is_anomalous != other.is_anomalous]

    @property
    def in_words(self) -> str:
        """Whether the AUROCs differ by more than chance."""
        if self.difference is None or self.interval is None:
            return str(self.first.metrics["undefined"])
        low, high = self.interval
        if low > 0 or high < 0:
            return f"the {'second' if low > 0 else 'first'} ranks better, beyond chance"
        return "no difference in ranking beyond chance"

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first.metrics,
            "second": self.second.metrics,
            "image_auroc_difference": self.difference,
            "interval_95": self.interval,
            "in_words": self.in_words,
            "differing": [
                {
                    "path": one.sample.identifier,
                    "label": one.sample.label,
                    "kind": one.sample.kind,
                    "first": _verdict(one),
                    "second": _verdict(other),
                }
                for one, other in self.differing
            ],
        }


def compare_models(
    first: Predictor, second: Predictor, samples: list[Sample], progress: Progress | None = None
) -> ModelComparison:
    """Evaluate both; the interval of their difference is a paired bootstrap over images."""
    ours, theirs = (evaluate(each, samples, progress) for each in (first, second))
    labels = np.array([sample.label for sample in samples])
    if why_undefined(labels):
        return ModelComparison(ours, theirs, None, None)
    one, other = (np.array([each.score for each in it.predicted]) for it in (ours, theirs))
    difference = theirs.metrics["image_auroc"] - ours.metrics["image_auroc"]
    interval = auroc_difference(labels, other, one, sample_groups(samples))
    return ModelComparison(ours, theirs, difference, interval)


def _verdict(scored: ScoredSample) -> dict[str, Any]:
    return {name: getattr(scored, name) for name in ("score", "p_value", "is_anomalous")}
