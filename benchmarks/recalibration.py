"""What calibrating again is worth after the light or the lens changed: AUROC and misses on changed
test images, with the threshold alone renewed, with the medians of the parts of the score (what `igd
calibrate` does), and with their deviations too.

python benchmarks/recalibration.py mvtec/cable mvtec/capsule casting --out recalibration.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conditions import conditions
from PIL import Image
from scipy.ndimage import gaussian_filter
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.reading import read_dataset
from igd.data.sample import Sample
from igd.files import write_text
from igd.inference.conformal import threshold
from igd.scales.base import ScaleOutput
from igd.scales.fusion import Fusion, RobustScaler
from igd.training.calibrate import UPPER_SCORE

SIDE, RATE, DRAWS = 256, 0.05, 30
LEARNT_FROM, KEPT, TESTED = 80, 150, 160  # images
CALIBRATING = 26


def darker(pixels: np.ndarray) -> np.ndarray:
    return 0.8 * pixels**1.15


def warmer(pixels: np.ndarray) -> np.ndarray:
    return pixels * np.array([1.05, 0.95, 0.8])


def blurred(pixels: np.ndarray) -> np.ndarray:
    """Another lens and a noisier sensor."""
    noise = np.random.default_rng(0).normal(0, 0.015, pixels.shape)
    return gaussian_filter(pixels, (1, 1, 0)) + noise


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda pixels: pixels,
    "darker": darker,
    "warmer": warmer,
    "blurred": blurred,
}


def changed(sample: Sample, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    picture = sample.read().convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return (change(np.asarray(picture) / 255).clip(0, 1) * 255).astype(np.uint8)


def parts_of(detector: IGD, images: list[np.ndarray]) -> torch.Tensor:
    """Every part of every image's score: (n, parts)."""
    fitted, rows = detector.fitted_, []
    for start in range(0, len(images), 16):
        stacked = np.stack(images[start : start + 16]).transpose(0, 3, 1, 2)
        pixels = torch.from_numpy(np.ascontiguousarray(stacked))
        features = fitted.features(pixels)
        outputs = [scale.score(pixels, features) for scale in fitted.scales]
        rows.append(torch.stack([part for output in outputs for part in output.parts], dim=1))
    return torch.cat(rows)


def deviation(fusion: Fusion, parts: torch.Tensor) -> np.ndarray:
    columns = list(parts.T)
    return fusion.deviation([ScaleOutput(columns, [1.0] * len(columns), {}, [], [])]).numpy()


def ways(fusion: Fusion, parts: torch.Tensor) -> dict[str, tuple[Fusion, torch.Tensor]]:
    """Fusions, and the images that set their thresholds."""
    quarter, others = parts[: len(parts) // 4], parts[len(parts) // 4 :]
    refitted = [RobustScaler.fit_upper(column, UPPER_SCORE) for column in quarter.T]
    both = replace(fusion, scalers=refitted, map_scalers=None)
    return {
        "threshold": (fusion, parts),
        "medians": (replace(fusion, map_scalers=None).centred_like(both), others),
        "medians and deviations": (both, others),
    }


def compared(
    fusion: Fusion, good: torch.Tensor, test: torch.Tensor, labels: np.ndarray
) -> dict[str, Any]:
    """Each way, on the average over draws of images to calibrate with."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(good))
        chosen, rest = good[order[:CALIBRATING]], good[order[CALIBRATING:]]
        for way, (fused, calibrating) in ways(fusion, chosen).items():
            limit = threshold(deviation(fused, calibrating), RATE)
            scores = deviation(fused, test)
            rows.setdefault(way, []).append(
                (
                    float(roc_auc_score(labels, scores)),
                    float((scores[labels == 1] <= limit).mean()),
                    float((deviation(fused, rest) > limit).mean()),
                )
            )
    names = ("image_auroc", "miss_rate", "false_alarm_rate")
    return {
        way: dict(zip(names, np.round(np.mean(each, axis=0), 4).tolist(), strict=True))
        for way, each in rows.items()
    }


def measured(folder: Path) -> dict[str, Any]:
    dataset, rng = read_dataset(folder), np.random.default_rng(0)
    training, tested = dataset.training_samples(), dataset.test_samples()
    rng.shuffle(training)
    rng.shuffle(tested)
    learnt, tested = training[: min(LEARNT_FROM, len(training) - 90)], tested[:TESTED]
    kept = training[len(learnt) : len(learnt) + KEPT]
    labels = np.array([sample.label for sample in tested])
    detector = IGD(image_size=SIDE).fit([changed(each, CHANGES["none"]) for each in learnt])
    found: dict[str, Any] = {}
    for name, change in CHANGES.items():
        good, test = (
            parts_of(detector, [changed(each, change) for each in some]) for some in (kept, tested)
        )
        found[name] = compared(detector.fitted_.fusion, good, test, labels)
        print(folder.name, name, json.dumps(found[name]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="data sets in MVTec's layout")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = {folder.name: measured(folder) for folder in options.folders}
    write_text(options.out, json.dumps(described(results), indent=1) + "\n")


def described(results: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": f"Calibrating again after the light or the lens changed: {CALIBRATING} images, "
        f"means of {DRAWS} draws",
        "command": f"python benchmarks/recalibration.py {' '.join(results)} --out FILE",
        **conditions("fast", 0),
        "recalibrations": results,
    }


if __name__ == "__main__":
    main()
