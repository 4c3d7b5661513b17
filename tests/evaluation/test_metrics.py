"""Metrics against scikit-learn, and AUPRO against a slow, obvious implementation."""

import numpy as np
import pytest
from scipy import ndimage
from sklearn.metrics import average_precision_score, roc_auc_score

from igd.evaluation.metrics import PixelMetrics, image_metrics


def test_image_metrics() -> None:
    labels, scores = np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9])
    metrics = image_metrics(labels, scores)
    assert metrics["image_auroc"] == roc_auc_score(labels, scores) == 0.75
    assert metrics["average_precision"] == average_precision_score(labels, scores)
    assert metrics["accuracy_at_half"] == 0.5


@pytest.fixture(scope="module")
def maps() -> tuple[list[np.ndarray], list[np.ndarray]]:
    chance = np.random.default_rng(0)
    heats, masks = [], []
    for n in range(6):
        mask = np.zeros((40, 50), dtype=bool)
        if n:
            mask[5 : 5 + 3 * n, 5:15] = True
            mask[30:33, 30 : 30 + 2 * n] = True
        heats.append((0.2 * chance.random((40, 50)) + 0.1 * mask * chance.random()).astype(np.float32))
        masks.append(mask)
    return heats, masks


def accumulated(maps) -> dict[str, float | None]:
    metrics = PixelMetrics()
    for heat, mask in zip(*maps, strict=True):
        metrics.add(heat, mask)
    return metrics.results()


def test_pixel_auroc_equals_scikit_learn(maps) -> None:
    heats, masks = maps
    results = accumulated(maps)
    pooled = roc_auc_score(np.concatenate([m.ravel() for m in masks]), np.concatenate([h.ravel() for h in heats]))
    each = np.mean([roc_auc_score(m.ravel(), h.ravel()) for h, m in zip(heats, masks, strict=True) if m.any()])
    assert results["pixel_auroc"] == pytest.approx(pooled, abs=1e-4)
    assert results["pixel_auroc_per_image"] == pytest.approx(each, abs=1e-4)


def slow_aupro(heats: list[np.ndarray], masks: list[np.ndarray], limit: float = 0.3) -> float:
    """By the definition: lower the threshold over every value, record false positives and mean overlap, integrate."""
    heats = [np.floor(heat.astype(np.float64) * 2**16) for heat in heats]
    regions = []
    for heat, mask in zip(heats, masks, strict=True):
        labels, count = ndimage.label(mask, np.ones((3, 3)))
        regions += [heat[labels == n] for n in range(1, count + 1)]
    normal = np.concatenate([heat[~mask] for heat, mask in zip(heats, masks, strict=True)])
    rates, overlaps = [0.0], [0.0]
    for level in np.unique(np.concatenate([heat.ravel() for heat in heats]))[::-1]:
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
    assert perfect.results() == {"pixel_auroc": 1.0, "pixel_auroc_per_image": 1.0, "aupro": 1.0}
    assert constant.results()["pixel_auroc"] == 0.5


def test_without_masks_nothing_is_claimed() -> None:
    metrics = PixelMetrics()
    metrics.add(np.zeros((4, 4), dtype=np.float32), np.zeros((4, 4), dtype=bool))
    assert set(metrics.results().values()) == {None}
