"""The audit, measured: anomalies mixed into normal training images, and how many of them are among
the first.

python benchmarks/audit.py --mvtec MVTEC/capsule --cifar ~/.cache/igd-data/cifar10.npz \\
    --out docs/results/audit.json

As many images are looked at as are planted: with 10 % planted, a perfect audit has a precision of 1
among the first 10 %, a blind one 0.1. Planted images are drawn by chance, from the category's test
defects and from the other classes of CIFAR-10.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.decoding import find_images
from igd.data.sample import Sample
from igd.evaluation.audit import audit
from igd.files import write_text
from igd.progress import TerminalProgress

SHARE = 0.1  # of the audited images that are planted, and that are looked at


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mvtec", type=Path, help="a category's folder")
    parser.add_argument("--cifar", type=Path, help="cifar10.npz")
    parser.add_argument(
        "--classes", type=int, nargs="+", default=[1, 8], help="of CIFAR-10, normal in turn"
    )
    parser.add_argument("--images", type=int, default=1000, help="audited of a CIFAR-10 class")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--recipe", default="fast")
    parser.add_argument("--steps", type=int, help="default: the recipe's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    sets = {}
    if options.mvtec:
        sets[f"MVTec AD {options.mvtec.name}"] = mvtec(options.mvtec, options.seed)
    if options.cifar:
        arrays = np.load(options.cifar)
        for number in options.classes:
            sets[f"CIFAR-10 class {number}"] = cifar(arrays, number, options.images, options.seed)
    detector = IGD(recipe=options.recipe, steps=options.steps, seed=options.seed)
    steps = f" --steps {options.steps}" if options.steps else ""
    summary = {
        "what": f"Audit of training images with {SHARE:.0%} planted anomalies",
        "command": "python benchmarks/audit.py --mvtec FOLDER --cifar FILE "
        f"--classes {' '.join(map(str, options.classes))} "
        f"--images {options.images} --folds {options.folds} --recipe {options.recipe}{steps} "
        f"--seed {options.seed}",
        **conditions(options.recipe, options.seed),
        "folds": options.folds,
        "audits": [
            run(name, samples, detector, options.folds, options.seed)
            for name, samples in sets.items()
        ],
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def mvtec(category: Path, seed: int) -> list[Sample]:
    """A category's training images, and test defects to make up the share."""
    normal = find_images(category / "train" / "good")
    defects = [path for path in find_images(category / "test") if path.parent.name != "good"]
    picked = np.random.default_rng(seed).choice(
        len(defects), planted_beside(len(normal)), replace=False
    )
    planted = [
        Sample(str(defects[n]), defects[n], defects[n].parent.name, label=1) for n in sorted(picked)
    ]
    return [*(Sample(str(path), path) for path in normal), *planted]


def cifar(arrays: dict[str, NDArray[Any]], number: int, count: int, seed: int) -> list[Sample]:
    """Images of one class of the training set, and of the others to make up the share."""
    rng, labels = np.random.default_rng(seed), arrays["y_train"].ravel()
    images = arrays["x_train"]
    normal = rng.choice(np.flatnonzero(labels == number), round(count * (1 - SHARE)), replace=False)
    planted = rng.choice(
        np.flatnonzero(labels != number), planted_beside(len(normal)), replace=False
    )
    return [
        *(Sample(f"train {n}", images[n]) for n in normal),
        *(Sample(f"train {n}", images[n], f"class {labels[n]}", label=1) for n in planted),
    ]


def planted_beside(normal: int) -> int:
    """How many anomalies make up the share of all."""
    return round(normal * SHARE / (1 - SHARE))


def run(name: str, samples: list[Sample], detector: IGD, folds: int, seed: int) -> dict[str, Any]:
    """Audit one set; precision among the first tenth."""
    started = time.time()
    labels = {sample.identifier: sample.label for sample in samples}
    ranked = [
        labels[each.name] for each in audit(samples, detector, folds, seed, TerminalProgress())
    ]
    return {
        "name": name,
        "images": len(samples),
        "planted": sum(ranked),
        "precision": float(np.mean(ranked[: round(SHARE * len(samples))])),
        "auroc": float(roc_auc_score(ranked, -np.arange(len(ranked)))),
        "seconds": round(time.time() - started, 1),
    }


if __name__ == "__main__":
    main()
