"""What each term of the objective adds from scratch, by what is read of the networks it trained.

python benchmarks/objectives.py docs/results/from-scratch-mnist.json \\
    docs/results/from-scratch-fashion-mnist.json docs/results/from-scratch-cifar10.json \\
    --out docs/results/objectives.json

Reads what from_scratch.py measured on held-out training images, where l_r is the paper's, whatever
a network was trained by; intervals are Student's, over classes of all data sets.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions, publish
from feature_space import difference

# Variants of from_scratch.py that differ in the objective alone, in the order of their terms.
OBJECTIVES = {
    "mse": "batch 16, mse",
    "rec": "batch 16, rec",
    "rec+gac": "batch 16, rec+gac",
    "igd": "batch 16",
}
FIGURES = {
    "l_r": "share 0",
    "l_r and l_h": "share 0.25",
    "statistics": "statistics alone",
    "l_r, statistics, detail": "l_r, statistics, detail",
}
PAIRS = (("rec", "mse"), ("rec+gac", "rec"), ("igd", "rec+gac"), ("igd", "mse"))
STEPS = 250  # of 64 images


def ends(results: list[dict[str, Any]], variant: str, figure: str) -> dict[str, float]:
    """A figure at the end of each class's training by a variant."""
    return {
        f"{result['what'].partition(':')[0]} {run['class']}": run["curve"][-1][figure]
        for result in results
        for run in result["time_to_quality"]
        if (run["variant"], run["of_steps"], run.get("share", 1.0)) == (variant, STEPS, 1.0)
        and figure in run["curve"][-1]
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = [json.loads(path.read_text()) for path in options.results]
    measured = {
        (name, shown): ends(results, variant, figure)
        for name, variant in OBJECTIVES.items()
        for shown, figure in FIGURES.items()
    }
    classes = sorted(set.intersection(*(set(each) for each in measured.values())))
    if not classes:
        missing = sorted({name for (name, _), figures in measured.items() if not figures})
        raise SystemExit(f"no class was trained by all objectives; without any: {missing}")
    means: dict[str, dict[str, float]] = {}
    for (name, shown), figures in measured.items():
        mean = float(np.mean([figures[each] for each in classes]))
        means.setdefault(name, {})[shown] = round(mean, 4)
    differences = {}
    for one, other in PAIRS:
        for shown in FIGURES:
            pair = (
                {each: measured[name, shown][each] for each in classes} for name in (one, other)
            )
            differences[f"{one} - {other}, {shown}"] = difference(*pair)
    told = {
        "what": f"Objectives from scratch, by what is read of their networks, held-out training "
        f"images of {len(classes)} classes: {', '.join(classes)}",
        "command": "python benchmarks/objectives.py "
        + " ".join(f"docs/results/{path.name}" for path in options.results),
        **conditions("fast", 0),
        "ablation": {"1000 steps of 16 images": {"means": means, "differences": differences}},
    }
    publish(told, options.out, "ablation")


if __name__ == "__main__":
    main()
