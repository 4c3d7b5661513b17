"""Exported models beside their originals: parity of every set of scales, size, and the image AUROC
with and without int8.

python benchmarks/exported.py --data mvtec/capsule --out docs/results/exported.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.reading import read_dataset
from igd.deploy.export import export
from igd.files import write_text
from igd.inference.predictor import Prediction, Predictor
from igd.inference.runtime import Runtime
from igd.progress import TerminalProgress

TRAINED = {"global", "local"}
SETS = (("position", "bank", "whole"), ("global",), ("local",), ("global", "local", "position"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a category in MVTec's layout")
    parser.add_argument(
        "--steps",
        type=int,
        default=50,
        help="of training, for the scales that train (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row(scales, options) for scales in SETS]
    summary = {
        "what": f"Exported models beside their originals, {options.data.name}",
        "command": f"python benchmarks/exported.py --data {options.data.name} "
        f"--steps {options.steps}",
        **conditions("fast", 0),
        "exported": rows,
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def row(scales: tuple[str, ...], options: argparse.Namespace) -> dict[str, Any]:
    """One detector, its exported model and that in 8 bits."""
    dataset = read_dataset(options.data)
    training = {"steps": options.steps} if TRAINED.intersection(scales) else {}
    detector = IGD(scales=scales, **training).fit(dataset, progress=TerminalProgress())
    found: dict[str, Any] = {"scales": list(scales), "auroc": auroc(detector, dataset)}
    with tempfile.TemporaryDirectory() as folder:
        detector.save(Path(folder) / "model.igd")
        found["bytes"] = (Path(folder) / "model.igd").stat().st_size
        for name, int8 in (("onnx", False), ("int8", True)):
            path = Path(folder) / f"{name}.onnx"
            parity = export(detector, path, int8=int8, tolerance=1.0 if int8 else None)
            exact = {
                "score": parity.score,
                "map": parity.map,
                "verdicts": parity.verdicts,
                "images": parity.images,
            }
            found[name] = {
                **exact,
                "bytes": path.stat().st_size,
                "auroc": auroc(Runtime.load(path), dataset),
            }
    return found


def auroc(predictor: Predictor, dataset: Any) -> float:
    """Image AUROC on the test images."""
    samples = dataset.test_samples()
    scores = [each.score for each in predictor.predictions(samples) if isinstance(each, Prediction)]
    return float(roc_auc_score(np.array([sample.label for sample in samples]), scores))


if __name__ == "__main__":
    main()
