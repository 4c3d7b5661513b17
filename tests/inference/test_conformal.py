"""Conformal p-values and thresholds: they agree with each other and keep their promise."""

import re

import numpy as np
import pytest

from igd.errors import UserError
from igd.inference.conformal import choose_rate, p_values, smallest_rate, threshold


def test_p_value_counts_ties_as_at_least_as_anomalous() -> None:
    np.testing.assert_allclose(p_values([0.0, 0.2, 0.5], [0.1, 0.2, 0.3]), [1.0, 0.75, 0.25])


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5])
def test_threshold_and_p_value_agree(rate: float) -> None:
    rng = np.random.default_rng(0)
    calibration = rng.random(99).round(2)  # with ties
    scores = np.concatenate([rng.random(500), calibration])
    alarms = scores > threshold(calibration, rate)
    np.testing.assert_array_equal(alarms, p_values(scores, calibration) <= rate + 1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_promise_is_kept_on_exchangeable_scores(rate: float) -> None:
    rng = np.random.default_rng(1)
    rates = [
        (rng.normal(size=50) > threshold(rng.normal(size=39), rate)).mean() for _ in range(2000)
    ]
    assert rate - 0.02 < np.mean(rates) <= rate + 0.01


def test_rate_that_too_few_images_can_promise() -> None:
    assert choose_rate(None, 99) == 0.05
    assert choose_rate(None, 9) == smallest_rate(9) == 0.1
    assert choose_rate(0.01, 99) == 0.01
    with pytest.raises(
        UserError, match=r"needs at least 99 calibration images, and there are 98.* 0\.01011"
    ):
        choose_rate(0.01, 98)
    with pytest.raises(UserError, match="between 0 and 1"):
        choose_rate(1.5, 98)


@pytest.mark.parametrize("count", range(1, 200))
def test_the_rate_that_is_offered_is_accepted(count: int) -> None:
    with pytest.raises(UserError) as refused:
        choose_rate(1e-6, count)
    offered = re.search(r"accept a rate of (\S+)", str(refused.value))
    assert offered
    assert choose_rate(float(offered[1]), count) < smallest_rate(count) * 1.002
