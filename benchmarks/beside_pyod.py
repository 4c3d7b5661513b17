"""PyOD beside igd: its usual detectors, as they come, on the vectors that igd's own backbone makes
of each image.

PyOD detects outliers among rows of numbers; what an image's row is, its user decides. Here it is
the pooled features of the default backbone, scaled to length 1. `pip install pyod` first, into an
environment of your own: it is no dependency.

python benchmarks/beside_pyod.py MVTEC/bottle MVTEC/capsule --out docs/results/pyod.json
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from igd.benchmark.baselines import frozen_vectors
from igd.data.reading import read_dataset
from igd.files import write_text

DETECTORS = {
    "ECOD": "ecod",
    "IForest": "iforest",
    "KNN": "knn",
    "LOF": "lof",
    "OCSVM": "ocsvm",
    "PCA": "pca",
}
SEEDED = ("IForest",)  # the others leave nothing to chance here


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("categories", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = [measured(category, options.seed) for category in options.categories]
    summary = {
        "what": "PyOD's detectors with their default settings on pooled ImageNet features: "
        "image AUROC; PyOD has no maps",
        "command": "python benchmarks/beside_pyod.py "
        f"{' '.join(f'MVTEC/{each.name}' for each in options.categories)} "
        f"--seed {options.seed}",
        **conditions("none", options.seed),
        "pyod": version("pyod"),
        "categories": rows,
        "means": {
            name: float(np.mean([row["image_auroc"][name] for row in rows])) for name in DETECTORS
        },
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def measured(category: Path, seed: int) -> dict[str, Any]:
    """Image AUROC of each detector on one category, and how long the features and all detectors
    took.
    """
    dataset = read_dataset(category)
    training, test = dataset.training_samples(), dataset.test_samples()
    started = time.perf_counter()
    normal, unknown = frozen_vectors(training), frozen_vectors(test)
    seen = time.perf_counter()
    scores = {name: inference_stride(name, normal, unknown, seed) for name in DETECTORS}
    ended = time.perf_counter()
    labels = [sample.label for sample in test]
    return {
        "category": category.name,
        "image_auroc": {name: float(roc_auc_score(labels, each)) for name, each in scores.items()},
        "seconds_of_features": round(seen - started, 1),
        "seconds_of_detectors": round(ended - seen, 1),
    }


def inference_stride(
    name: str, normal: NDArray[Any], unknown: NDArray[Any], seed: int
) -> NDArray[Any]:
    detector = getattr(import_module(f"pyod.models.{DETECTORS[name]}"), name)
    fitted = detector(**({"random_state": seed} if name in SEEDED else {})).fit(normal)
    scores: NDArray[Any] = fitted.decision_function(unknown)
    return scores


if __name__ == "__main__":
    main()
