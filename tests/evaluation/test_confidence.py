"""Confidence intervals: against a slow bootstrap, their definition, and what they claim to
cover.
"""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import average_precision_score, roc_auc_score

from igd.evaluation.confidence import (
    auroc_difference,
    grouped_rate_interval,
    ranking_intervals,
    rate_interval,
)


def draw(rng: np.random.Generator, normal: int, anomalous: int) -> tuple[np.ndarray, np.ndarray]:
    labels = np.repeat([0, 1], [normal, anomalous])
    return labels, (rng.normal(size=len(labels)) + labels).round(1)  # with ties


def test_intervals_equal_those_of_a_slow_bootstrap() -> None:
    rng = np.random.default_rng(0)
    labels, scores = draw(rng, 120, 60)
    aurocs, precisions = [], []
    for _ in range(500):  # scikit-learn takes milliseconds for each
        picked = np.concatenate(
            [
                rng.choice(np.flatnonzero(labels == label), (labels == label).sum())
                for label in (0, 1)
            ]
        )
        aurocs.append(roc_auc_score(labels[picked], scores[picked]))
        precisions.append(average_precision_score(labels[picked], scores[picked]))
    intervals = ranking_intervals(labels, scores, resamples=2000)
    assert intervals["image_auroc"] == pytest.approx(np.quantile(aurocs, [0.025, 0.975]), abs=0.01)
    assert intervals["average_precision"] == pytest.approx(
        np.quantile(precisions, [0.025, 0.975]), abs=0.015
    )


def test_a_resample_that_is_the_test_set_has_its_metrics() -> None:
    """One image of each score, drawn as often as it is there: the vectorised formulas against
    scikit-learn's.
    """
    from igd.evaluation.confidence import _rankings

    labels, scores = draw(np.random.default_rng(1), 200, 300)
    levels = np.unique(scores)[::-1]
    normal, anomalous = (
        np.array([[(scores[labels == label] == level).sum() for level in levels]], dtype=np.float32)
        for label in (0, 1)
    )
    area, average = _rankings(normal, anomalous)
    assert area[0] == pytest.approx(roc_auc_score(labels, scores), abs=1e-6)
    assert average[0] == pytest.approx(average_precision_score(labels, scores), abs=1e-6)


def test_the_same_seed_gives_the_same_interval_and_more_images_a_narrower_one() -> None:
    small, large = (
        draw(np.random.default_rng(2), 40, 40),
        draw(np.random.default_rng(2), 4000, 4000),
    )
    assert (
        ranking_intervals(*small, seed=3)
        == ranking_intervals(*small, seed=3)
        != ranking_intervals(*small, seed=4)
    )
    width = [
        high - low
        for low, high in (ranking_intervals(*each)["image_auroc"] for each in (small, large))
    ]
    assert width[1] < width[0] / 5


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    truth = roc_auc_score(*draw(rng, 50_000, 50_000))
    intervals = [
        ranking_intervals(*draw(rng, 80, 80), resamples=300)["image_auroc"] for _ in range(200)
    ]
    assert 0.88 < np.mean([low <= truth <= high for low, high in intervals]) <= 0.99


@pytest.mark.parametrize(("count", "total"), [(0, 20), (1, 20), (10, 20), (20, 20)])
def test_rate_interval_ends_where_the_count_becomes_unlikely(count: int, total: int) -> None:
    """By the definition of Clopper and Pearson: at either end, a count this extreme has a chance of
    2.5 %.
    """
    low, high = rate_interval(count, total)
    assert low == 0 if count == 0 else binom.sf(count - 1, total, low) == pytest.approx(0.025)
    assert high == 1 if count == total else binom.cdf(count, total, high) == pytest.approx(0.025)


def test_paired_differences_cover_the_truth_and_are_narrower_than_unpaired_ones() -> None:
    rng, covered, widths = np.random.default_rng(0), 0, []
    labels = np.repeat([0, 1], 60)
    for number in range(100):
        shared = rng.normal(size=120) + labels  # what is hard is hard for both
        ours, theirs = (shared + 0.2 * rng.normal(size=120) for _ in range(2))
        low, high = auroc_difference(labels, ours, theirs, resamples=300, seed=number)
        covered += low <= 0 <= high
        alone = ranking_intervals(labels, ours, resamples=300)["image_auroc"]
        widths.append((high - low) / (alone[1] - alone[0]))
    assert covered >= 88
    assert np.mean(widths) < 0.5


def test_a_difference_is_the_difference_of_the_same_resamples() -> None:
    rng, labels = np.random.default_rng(1), np.repeat([0, 1], 40)
    scores = rng.normal(size=80) + labels
    assert auroc_difference(labels, scores, 3 * scores + 1) == (0, 0)
    low, high = auroc_difference(labels, scores, -scores)
    assert 0 < low < high
    assert auroc_difference(labels, -scores, scores) == pytest.approx((-high, -low))


def clustered(rng: np.random.Generator, normal: int, anomalous: int, copies: int):
    """Test images of which each group has `copies` near copies."""
    labels, scores = draw(rng, normal, anomalous)
    noise = rng.normal(0, 0.01, copies * len(labels))
    groups = np.repeat(np.arange(len(labels)), copies)
    return labels[groups], scores[groups] + noise, groups


def test_copies_of_images_are_no_evidence_where_they_are_grouped() -> None:
    labels, scores = draw(np.random.default_rng(6), 60, 40)
    groups = np.repeat(np.arange(100), 4)
    copied = ranking_intervals(labels[groups], scores[groups], groups)
    assert copied == ranking_intervals(labels, scores)
    low, high = ranking_intervals(labels[groups], scores[groups])["image_auroc"]
    assert high - low < 0.6 * np.diff(copied["image_auroc"]).item()


def test_grouped_intervals_cover_the_truth_as_often_as_they_say_and_others_do_not() -> None:
    rng = np.random.default_rng(7)
    truth = roc_auc_score(*draw(rng, 50_000, 50_000))
    covered: list[list[bool]] = [[], []]
    for _ in range(150):
        labels, scores, groups = clustered(rng, 50, 50, 3)
        for each, by in zip(covered, (groups, None), strict=True):
            low, high = ranking_intervals(labels, scores, by, resamples=200)["image_auroc"]
            each.append(low <= truth <= high)
    assert np.mean(covered[0]) > 0.88 > 0.84 > np.mean(covered[1])


def test_groups_of_both_kinds_are_drawn_whole() -> None:
    """Every patient has a higher score on the defect than on the rest: whoever is drawn, the
    ranking within patients is perfect, and across them it is not.
    """
    rng = np.random.default_rng(8)
    level = np.repeat(rng.normal(0, 0.2, 30), 2)
    labels, groups = np.tile([0, 1], 30), np.repeat(np.arange(30), 2)
    low, high = ranking_intervals(labels, level + labels, groups)["image_auroc"]
    assert 0.9 < low <= high <= 1
    single = ranking_intervals(labels[:2], level[:2] + labels[:2], groups[:2])
    assert single["image_auroc"] == (1, 1)


def test_rates_of_grouped_images_have_wider_intervals_that_cover() -> None:
    rng, covered = np.random.default_rng(9), []
    for _ in range(300):
        wrong = rng.random(40) < 0.15
        groups = np.repeat(np.arange(40), 5)
        low, high = grouped_rate_interval(wrong[groups], groups)
        covered.append(low <= 0.15 <= high)
    assert np.mean(covered) > 0.93
    alone = rng.random(200) < 0.3
    apart = grouped_rate_interval(alone, np.arange(200))
    assert apart == pytest.approx(rate_interval(int(alone.sum()), 200), abs=0.01)
