"""What matters comes first, in words: misses, false alarms, and rates to choose from."""

import numpy as np
import pytest

from igd.evaluation.metrics import best_f1
from igd.evaluation.summary import (
    as_table,
    chance_of_so_many,
    choices,
    comments,
    in_numbers,
    possible_rates,
)
from igd.inference.conformal import Calibration

SCORES = np.linspace(0, 0.5, 199)  # of 199 normal images
CALIBRATION = Calibration(SCORES, SCORES, 0.3, 0.05)  # its threshold is 0.4747


def test_counts_and_sentences_agree() -> None:
    labels, scores = np.repeat([0, 1], [20, 10]), np.repeat([0.1, 0.48, 0.2, 0.9], [19, 1, 3, 7])
    told = in_numbers(labels, scores, CALIBRATION)
    assert (told["misses"], told["false_alarms"]) == (3, 1)
    assert told["summary"][:2] == [
        "3 of 10 defects are missed (30 %; 95 % interval: 6.7 % to 65.2 %)",
        "1 of 20 normal images are false alarms (5 %; 95 % interval: 0.1 % to 24.9 %); "
        "at most 5 % were promised",
    ]


def test_rates_to_choose_from_are_those_of_the_calibration() -> None:
    labels, scores = np.repeat([0, 1], [50, 50]), np.linspace(0, 1, 100)
    told = choices(labels, scores, CALIBRATION)
    for each in told:
        assert each.threshold is not None
        assert (each.threshold < SCORES).sum() + 1 <= each.promised * 200
        assert each.misses == (scores[50:] <= each.threshold).sum()
        assert each.false_alarms == (scores[:50] > each.threshold).sum()
    few = Calibration(SCORES[:20], SCORES[:20], 0.3, 0.05)
    rows = in_numbers(labels, scores, few)["at_promised_rates"]
    assert [each["threshold"] is None for each in rows] == [True, True, False, False, False]
    assert as_table(rows, 50, 50)[0] == ["1 %", "needs 99 calibration images", "", ""]
    assert possible_rates(few)[0] == pytest.approx(1 / 21)


def test_more_false_alarms_than_chance_explains_are_said() -> None:
    def told(wrong: int) -> str:
        scores = np.repeat([0.1, 0.49, 0.9], [20 - wrong, wrong, 20])
        return " ".join(comments(np.repeat([0, 1], [20, 20]), scores, CALIBRATION))

    assert "the promise does not hold" not in told(2)
    assert "40 % false alarms instead of 5 % are more than chance explains" in told(8)


def test_the_chance_is_what_drawing_calibration_and_test_images_gives() -> None:
    rng, few = np.random.default_rng(0), Calibration(SCORES[:39], SCORES[:39], 0.3, 0.05)
    drawn = rng.random((20_000, 39 + 20))
    limit = np.sort(drawn[:, :39], axis=1)[:, -2]  # 2 of 40: the rate of 5 %
    wrong = (drawn[:, 39:] > limit[:, None]).sum(axis=1)
    for count in (1, 2, 4):
        assert chance_of_so_many(count, 20, few) == pytest.approx((wrong >= count).mean(), abs=0.01)


def test_a_threshold_far_from_the_best_gets_a_reason_and_a_way_out() -> None:
    labels = np.repeat([0, 1], [20, 20])
    too_high = np.repeat([0.1, 0.42], [20, 20])  # between the thresholds of 5 and 20 %
    (told,) = comments(labels, too_high, CALIBRATION)
    assert "the threshold is too high for them" in told
    assert "would miss 0 instead of 20" in told
    assert "--max-false-alarms 0." in told
    assert comments(labels, np.repeat([0.1, 0.9], [20, 20]), CALIBRATION) == []
    *_, low = comments(labels, np.repeat([0.6, 0.9], [20, 20]), CALIBRATION)
    assert "too low for them, and no rate helps; calibrate with normal images" in low


def test_one_kind_alone_is_told_too() -> None:
    (told,) = in_numbers(np.zeros(9, dtype=int), np.full(9, 0.1), CALIBRATION)["summary"]
    assert told.startswith("0 of 9 normal images are false alarms")


def test_best_f1_is_the_best_over_all_thresholds() -> None:
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 60), rng.integers(0, 12, 60) / 12
    tried = [
        2 * (labels[scores >= limit].sum()) / ((scores >= limit).sum() + labels.sum())
        for limit in np.unique(scores)
    ]
    assert best_f1(labels, scores) == pytest.approx(max(tried))


def test_near_copies_of_few_false_alarms_do_not_break_the_promise() -> None:
    """Two patients of 20 with ten images each: 10 % by chance, but not 20 of 200 images."""
    groups = np.repeat(np.arange(20), 10)
    labels, scores = np.zeros(200, dtype=int), np.where(groups < 2, 0.48, 0.1)
    assert "the promise does not hold" in " ".join(comments(labels, scores, CALIBRATION))
    assert comments(labels, scores, CALIBRATION, groups) == []
    many = np.where(groups < 8, 0.48, 0.1)
    assert "the promise does not hold" in " ".join(comments(labels, many, CALIBRATION, groups))
    (told,) = in_numbers(labels, scores, CALIBRATION, groups)["summary"]
    assert "20 of 200 normal images are false alarms (10 %; 95 % interval: 0.9 % to 34.3 %)" in told
