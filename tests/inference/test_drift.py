"""The running test for drift: silent on exchangeable images, whatever their number, and not on
others.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from igd.inference.conformal import Calibration
from igd.inference.drift import DriftMonitor


def scores(rng: np.random.Generator, count: int, shift: float = 0) -> np.ndarray:
    return 1 / (1 + np.exp(-rng.normal(size=count) - shift))


def calibration(rng: np.random.Generator, count: int) -> Calibration:
    drawn = scores(rng, count)
    return Calibration(drawn, drawn, 0.1, 0.1)


def watch(monitor: DriftMonitor, incoming: np.ndarray, threshold: float = 0.9) -> DriftMonitor:
    for each in incoming:
        monitor.update(float(each), bool(each > threshold))
    return monitor


@pytest.mark.parametrize("count", [9, 60])
def test_the_chance_of_a_notice_without_cause_is_at_most_images_over_limit(count: int) -> None:
    rng, runs, images = np.random.default_rng(count), 60, 300
    noticed = 0
    for _ in range(runs):
        monitor = DriftMonitor(calibration(rng, count), limit=4 * images)
        noticed += watch(monitor, scores(rng, images)).noticed_at is not None
    bound = images / (4 * images)
    assert noticed <= runs * bound + 3 * np.sqrt(runs * bound * (1 - bound))


def test_the_evidence_grows_like_the_number_of_images() -> None:
    """The mean of Shiryaev and Roberts' R after t images is t: what the guarantee rests on."""
    rng = np.random.default_rng(0)
    reached = [
        watch(DriftMonitor(calibration(rng, 5)), scores(rng, 10)).evidence for _ in range(2000)
    ]
    assert np.mean(reached) == pytest.approx(10, rel=0.15)


def test_ranks_are_uniform_and_independent_however_few_images_calibrate() -> None:
    rng = np.random.default_rng(0)
    monitor = DriftMonitor(calibration(rng, 5))
    ranks = np.array([monitor._rank(float(each)) for each in scores(rng, 3000)])
    assert kstest(ranks, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 0.08


def test_equal_scores_are_no_drift() -> None:
    equal = Calibration(np.full(50, 0.3), np.full(50, 0.3), 0.1, 0.1)
    assert watch(DriftMonitor(equal), np.full(2000, 0.3)).noticed_at is None


@pytest.mark.parametrize(("shift", "within"), [(3.0, 60), (1.5, 150)])
def test_other_light_is_noticed_soon(shift: float, within: int) -> None:
    rng = np.random.default_rng(1)
    monitor = watch(DriftMonitor(calibration(rng, 100)), scores(rng, 500))
    assert monitor.noticed_at is None
    assert monitor.notice is None
    watch(monitor, scores(rng, within, shift))
    assert monitor.noticed_at is not None
    assert "igd calibrate" in str(monitor.notice)


def test_a_few_defects_among_good_images_are_no_drift_and_many_are() -> None:
    rng = np.random.default_rng(2)
    for share, expected in ((0.05, False), (0.4, True)):
        monitor = DriftMonitor(calibration(rng, 100))
        defective = rng.random(1500) < share
        watch(monitor, np.where(defective, scores(rng, 1500, 6), scores(rng, 1500)))
        assert (monitor.noticed_at is not None) == expected


def test_the_notice_tells_the_share_of_alarms_among_the_last_images() -> None:
    rng = np.random.default_rng(3)
    monitor = watch(DriftMonitor(calibration(rng, 100)), scores(rng, 300))
    first = [monitor.update(0.99, number % 2 == 0) for number in range(200)]
    assert sum(first) == 1
    assert monitor.alarm_share == 0.5
    assert "of the last 200 images 50% are alarms, 10% were promised" in str(monitor.notice)
