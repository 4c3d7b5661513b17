"""The Gaussian that IGD's training starts from: l_h alone, after a step at a rate of nothing.

igd benchmark run mvtec --data DIR --classes bottle capsule grid screw --scales global \\
    --steps 1 --learning-rate 1e-30 --methods benchmarks/untrained.py:Untrained --seeds 0 1 2

What a trained model is worth shows beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from igd.benchmark.methods import Scored, Trained
from igd.data.sample import Sample
from igd.inference.predictor import Prediction


class Untrained(Trained):
    unit_scores = False  # l_h says nothing at one half

    def fit(self, images: Sequence[Sample]) -> None:
        super().fit(images)
        self.threshold = self.calibration_scores = None  # they are of scores with l_r in them

    def reading(self, prediction: Prediction) -> Scored:
        return Scored(prediction.terms["global.anomaly"])
