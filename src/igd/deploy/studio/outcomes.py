"""What a prediction means for a person: a tick, an alarm, or a second look."""

from __future__ import annotations

from typing import Literal

import numpy as np

from igd.inference.mismatch import is_another_size
from igd.inference.predictor import Prediction

Outcome = Literal["normal", "spot", "unlike", "anomalous", "all over"]
MOSTLY = 0.5  # share of an image that deviates, from which it may show something else altogether


def outcome_of(prediction: Prediction, is_anomalous: bool, pixel_threshold: float) -> Outcome:
    """anomalous  an alarm
    all over   an alarm, and most of the image deviates: is it the product at all?
    unlike     no alarm, but the image is of another kind than those that were learnt from
    spot       no alarm, but some area deviates as few normal images do anywhere
    normal     nothing of this
    """
    deviating = prediction.map > pixel_threshold
    if is_anomalous:
        return "all over" if float(np.mean(deviating)) > MOSTLY else "anomalous"
    if any(not is_another_size(each) for each in prediction.mismatches):
        return "unlike"
    return "spot" if deviating.any() else "normal"
