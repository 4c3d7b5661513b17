"""What an update is worth after the light changed: AUROC, misses and false alarms under the new
light and under the former one, of the model as it was, calibrated on new images, updated with them,
and trained anew on former and new ones.

python benchmarks/updating.py mvtec/cable mvtec/capsule casting --out update.json
"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions
from recalibration import CHANGES, SIDE, changed
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.reading import read_dataset
from igd.files import write_text

LEARNT_FROM, ADDED = 80, 40  # images
TRIED, TESTED = ("darker", "warmer"), 100  # of the changes, and images


def figures(detector: IGD, images: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    scores = -detector.score_samples(images)
    alarms = scores > detector.threshold_
    return {
        "image_auroc": round(float(roc_auc_score(labels, scores)), 4),
        "miss_rate": round(1 - float(alarms[labels == 1].mean()), 4),
        "false_alarm_rate": round(float(alarms[labels == 0].mean()), 4),
    }


def measured(folder: Path) -> dict[str, Any]:
    dataset, rng = read_dataset(folder), np.random.default_rng(0)
    training, tested = dataset.training_samples(), dataset.test_samples()
    rng.shuffle(training)
    rng.shuffle(tested)
    tested = tested[:TESTED]
    labels = np.array([sample.label for sample in tested])
    first = [changed(each, CHANGES["none"]) for each in training[:LEARNT_FROM]]
    former = IGD(image_size=SIDE).fit(first)
    found: dict[str, Any] = {}
    for name in TRIED:
        more = [
            changed(each, CHANGES[name]) for each in training[LEARNT_FROM : LEARNT_FROM + ADDED]
        ]
        ways = {
            "as it was": former,
            "calibrated": copy.deepcopy(former).calibrate(more),
            "updated": copy.deepcopy(former).update(more),
            "trained on all": IGD(image_size=SIDE).fit(first + more),
        }
        lights = {"new": name, "former": "none"}
        tests = {
            light: np.stack([changed(each, CHANGES[change]) for each in tested])
            for light, change in lights.items()
        }
        found[name] = {
            way: {light: figures(detector, test, labels) for light, test in tests.items()}
            for way, detector in ways.items()
        }
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
    described = {
        "what": f"Updating a model of {LEARNT_FROM} images with {ADDED} under other light",
        "command": f"python benchmarks/updating.py {' '.join(results)} --out FILE",
        **conditions("fast", 0),
        "updates": results,
    }
    write_text(options.out, json.dumps(described, indent=1) + "\n")


if __name__ == "__main__":
    main()
