"""Metrics against scikit-learn, and AUPRO against a slow, obvious implementation."""

import numpy as np
import pytest
from scipy import ndimage
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve, roc_auc_score

from igd.evaluation.metrics import PixelMetrics, image_metrics, why_undefined


def test_image_metrics() -> None:
    labels, scores = np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9])
    metrics = image_metrics(labels, scores, threshold=0.5)
    assert metrics["image_auroc"] == roc_auc_score(labels, scores) == 0.75
    assert metrics["average_precision"] == average_precision_score(labels, scores)
    assert metrics["accuracy_at_half"] == 0.5
    assert (metrics["false_alarm_rate"], metrics["miss_rate"]) == (0.5, 0.5)


def test_f1_equals_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    scores = (rng.random(300) + 0.5 * labels).round(2)  # with ties
    metrics = image_metrics(labels, scores, threshold=0.8)
    assert metrics["f1_at_threshold"] == pytest.approx(f1_score(labels, scores > 0.8))
    assert metrics["f1_best"] == pytest.approx(
        max(f1_score(labels, scores >= level) for level in np.unique(scores))
    )


def test_a_threshold_without_alarms_has_an_f1_of_zero() -> None:
    assert (
        image_metrics(np.array([0, 1]), np.array([0.1, 0.2]), threshold=0.9)["f1_at_threshold"] == 0
    )


@pytest.mark.parametrize(
    ("label", "named", "known"), [(0, "normal", "false_alarm_rate"), (1, "anomalous", "miss_rate")]
)
def test_one_kind_of_image_leaves_comparisons_undefined(label: int, named: str, known: str) -> None:
    labels = np.full(4, label)
    metrics = image_metrics(labels, np.array([0.1, 0.2, 0.6, 0.7]), threshold=0.5)
    assert metrics[known] == 0.5
    assert f"all 4 test images are {named}" in str(why_undefined(labels))
    defined = {name for name, value in metrics.items() if value is not None}
    assert defined == {"accuracy_at_half", known}


@pytest.fixture(scope="module")
def maps() -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    anomaly_maps, masks = [], []
    for n in range(6):
        mask = np.zeros((40, 50), dtype=bool)
        if n:
            mask[5 : 5 + 3 * n, 5:15] = True
            mask[30:33, 30 : 30 + 2 * n] = True
        anomaly_maps.append(
            (0.2 * rng.random((40, 50)) + 0.1 * mask * rng.random()).astype(np.float32)
        )
        masks.append(mask)
    return anomaly_maps, masks


def accumulated(maps) -> dict[str, float | None]:
    metrics = PixelMetrics()
    for anomaly_map, mask in zip(*maps, strict=True):
        metrics.add(anomaly_map, mask)
    return metrics.results()


def test_pixel_auroc_equals_scikit_learn(maps) -> None:
    anomaly_maps, masks = maps
    results = accumulated(maps)
    pooled = roc_auc_score(
        np.concatenate([m.ravel() for m in masks]),
        np.concatenate([h.ravel() for h in anomaly_maps]),
    )
    each = np.mean(
        [
            roc_auc_score(m.ravel(), h.ravel())
            for h, m in zip(anomaly_maps, masks, strict=True)
            if m.any()
        ]
    )
    assert results["pixel_auroc"] == pytest.approx(pooled, abs=1e-4)
    assert results["pixel_auroc_per_image"] == pytest.approx(each, abs=1e-4)


def test_pixel_f1_equals_scikit_learn(maps) -> None:
    anomaly_maps, masks = (np.concatenate([array.ravel() for array in arrays]) for arrays in maps)
    precision, recall, _ = precision_recall_curve(masks, anomaly_maps)
    best = (2 * precision * recall / (precision + recall + 1e-12)).max()
    assert accumulated(maps)["pixel_f1_best"] == pytest.approx(best, abs=1e-3)


def slow_aupro(
    anomaly_maps: list[np.ndarray], masks: list[np.ndarray], limit: float = 0.3
) -> float:
    """By the definition: lower the threshold over every value, record false positives and mean
    overlap, integrate.
    """
    anomaly_maps = [
        np.floor(anomaly_map.astype(np.float64) * 2**16) for anomaly_map in anomaly_maps
    ]
    regions = []
    for anomaly_map, mask in zip(anomaly_maps, masks, strict=True):
        labels, count = ndimage.label(mask, np.ones((3, 3)))
        regions += [anomaly_map[labels == n] for n in range(1, count + 1)]
    normal = np.concatenate(
        [anomaly_map[~mask] for anomaly_map, mask in zip(anomaly_maps, masks, strict=True)]
    )
    rates, overlaps = [0.0], [0.0]
    for level in np.unique(np.concatenate([anomaly_map.ravel() for anomaly_map in anomaly_maps]))[
        ::-1
    ]:
        rates.append((normal >= level).mean())
        overlaps.append(np.mean([(region >= level).mean() for region in regions]))
        if rates[-1] >= limit:
            break
    share = (limit - rates[-2]) / (rates[-1] - rates[-2])
    rates[-1], overlaps[-1] = limit, overlaps[-2] + share * (overlaps[-1] - overlaps[-2])
    return float(np.trapezoid(overlaps, rates) / limit)


def test_aupro_equals_its_definition(maps) -> None:
    assert accumulated(maps)["aupro"] == pytest.approx(slow_aupro(*maps), abs=1e-6)


def test_perfect_and_constant_maps() -> None:
    mask = np.zeros((20, 20), dtype=bool)
    mask[5:9, 5:9] = True
    perfect, constant = PixelMetrics(), PixelMetrics()
    perfect.add(mask.astype(np.float32), mask)
    constant.add(np.full((20, 20), 0.5, dtype=np.float32), mask)
    assert perfect.results() == {
        "pixel_auroc": 1.0,
        "pixel_auroc_per_image": 1.0,
        "aupro": 1.0,
        "pixel_f1_best": 1.0,
    }
    assert constant.results()["pixel_auroc"] == 0.5


def test_without_masks_nothing_is_claimed() -> None:
    metrics = PixelMetrics()
    metrics.add(np.zeros((4, 4), dtype=np.float32), np.zeros((4, 4), dtype=bool))
    assert set(metrics.results().values()) == {None}
