"""MVTec AD categories: image and pixel metrics, and the time they took.

python benchmarks/mvtec.py MVTEC/bottle --out docs/results/mvtec-bottle-scratch.json \\
    --report bottle.html
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from conditions import FROM_SCRATCH, conditions
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.reading import read_dataset
from igd.evaluation.evaluate import evaluate
from igd.evaluation.report import write_report
from igd.files import write_text
from igd.progress import TerminalProgress


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("category", type=Path)
    parser.add_argument("--recipe", default="fast")
    parser.add_argument("--objective", default="igd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()

    name = options.category.name
    started = time.time()
    detector = IGD(
        **FROM_SCRATCH, recipe=options.recipe, objective=options.objective, seed=options.seed
    )
    dataset = read_dataset(options.category)
    detector.fit(dataset, progress=TerminalProgress())
    trained = time.time()
    evaluation = evaluate(detector, dataset.test_samples(), TerminalProgress())
    inference_stride = time.time()
    labels = [each.sample.label for each in evaluation.predicted]
    terms = {
        term: float(roc_auc_score(labels, [each.terms[term] for each in evaluation.predicted]))
        for term in evaluation.predicted[0].terms
    }
    summary = {
        "what": f"MVTec AD, {name}, from scratch; the last model",
        "command": f"python benchmarks/mvtec.py FOLDER/{name} --recipe {options.recipe} "
        f"--objective {options.objective} --seed {options.seed}",
        "category": name,
        "objective": options.objective,
        **conditions(options.recipe, options.seed),
        "metrics": evaluation.metrics,
        "image_auroc_of_each_term": terms,
        "training_seconds": round(trained - started, 1),
        "scoring_ms_an_image": round(1000 * (inference_stride - trained) / len(labels), 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")
    if options.report:
        write_report(options.report, detector, evaluation, f"MVTec AD: {name}")


if __name__ == "__main__":
    main()
