"""Fashion MNIST from scratch: AUC of l_h, l_r and their mean, one class normal, nine anomalous.

python benchmarks/fashion_mnist.py --data ~/.cache/igd-data/fashion_mnist.npz --classes 0 5 9 \
    --out docs/results/fashion-mnist-scratch.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from conditions import FROM_SCRATCH, conditions
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.files import write_text
from igd.progress import TerminalProgress

PAPER = 0.9201  # mean of ten classes, from scratch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--recipe", default="fast")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    arrays = np.load(options.data)
    runs = [run(arrays, number, options.recipe, options.seed) for number in options.classes]
    summary = {
        "what": "Fashion MNIST, one class normal, from scratch; test AUC of the last model",
        "command": f"python benchmarks/fashion_mnist.py --data FILE --classes {' '.join(map(str, options.classes))} "
        f"--recipe {options.recipe} --seed {options.seed}",
        **conditions(options.recipe, options.seed),
        "paper_mean_of_ten_classes": PAPER,
        "runs": runs,
        "mean_auc": {name: float(np.mean([each["auc"][name] for each in runs])) for name in runs[0]["auc"]},
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def run(arrays: dict[str, np.ndarray], number: int, recipe: str, seed: int) -> dict[str, object]:
    """Train on one class of the training set, score the whole test set once."""
    started = time.time()
    normal = arrays["x_train"][arrays["y_train"] == number]
    detector = IGD(**FROM_SCRATCH, recipe=recipe, seed=seed).fit(normal, progress=TerminalProgress())
    trained = time.time()
    predictions = detector.predict(arrays["x_test"])
    labels = arrays["y_test"] != number
    values = {name: [each.terms[f"global.{name}"] for each in predictions] for name in ("anomaly", "reconstruction")}
    values["mean"] = [each.score for each in predictions]
    alarms = np.array([each.is_anomalous for each in predictions])
    return {
        "class": number,
        "auc": {name: float(roc_auc_score(labels, scores)) for name, scores in values.items()},
        "false_alarm_rate": float(alarms[~labels].mean()),
        "promised_false_alarm_rate": detector.false_alarm_rate_,
        "training_seconds": round(trained - started, 1),
        "scoring_ms_an_image": round(1000 * (time.time() - trained) / len(labels), 2),
    }


if __name__ == "__main__":
    main()
