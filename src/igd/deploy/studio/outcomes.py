"""What a prediction means for a person: a tick, an alarm, or a second look."""

from __future__ import annotations

from typing import Literal

import numpy as np

from igd.inference.conformal import Calibration, p_values, threshold
from igd.inference.mismatch import is_another_size
from igd.inference.predictor import Prediction

Outcome = Literal["normal", "spot", "unlike", "anomalous", "all over"]
MOSTLY = 0.5  # share of an image that deviates, from which it may show something else altogether
RARE = 0.1  # share of normal images whose maps have such a peak: from here on its colour is seen


def outcome_of(
    prediction: Prediction, is_anomalous: bool, calibration: Calibration, rate: float
) -> Outcome:
    """anomalous  an alarm
    all over   an alarm, and most of the image deviates: is it the product at all?
    unlike     no alarm, but the image is of another kind than those that were learnt from
    spot       no alarm, but some area deviates as few normal images do anywhere
    normal     nothing of this
    """
    if is_anomalous:
        deviating = prediction.map > threshold(calibration.peaks, rate)
        return "all over" if float(np.mean(deviating)) > MOSTLY else "anomalous"
    if any(not is_another_size(each) for each in prediction.mismatches):
        return "unlike"
    (rarity,) = p_values([prediction.map.max()], calibration.peaks)
    return "spot" if rarity <= max(rate, RARE) else "normal"
