"""Few images and contaminated ones: the default on every data set, as it is and without the images
it names as odd.

python benchmarks/hardship.py --data MVTEC FIELD \\
    --out docs/results/hardship.json

Training images are drawn by a seed; contamination moves anomalous test images to the training
images, of which they are then the stated share, and they are tested no more.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from choice import THE_DEFAULT, deviations, figures, mean_of, parts_from
from conditions import conditions, publish
from set_features import SetFeatures, data_arguments, features_of, find_sets
from torch import Tensor

from igd.files import write_text
from igd.inference.conformal import choose_rate, threshold
from igd.progress import TerminalProgress
from igd.rng import generator
from igd.scales.fusion import softsign
from igd.training.calibrate import are_odd
from igd.training.material import LEAST_KEPT


@dataclass(frozen=True)
class Condition:
    """What there is to learn from."""

    name: str
    images: int | None = None  # at most so many
    share: float = 1.0  # of the normal training images
    contamination: float = 0.0  # share of anomalous images among those learnt from


CONDITIONS = (
    Condition("all images"),
    Condition("20 % of the images", share=0.2),
    *(Condition(f"{count} images", images=count) for count in (50, 20, 10, 5)),
    *(Condition(f"{share:.0%} contaminated", contamination=share) for share in (0.01, 0.05, 0.1)),
)


def drawn(features: SetFeatures, condition: Condition, seed: int) -> tuple[SetFeatures, Tensor]:
    """The data set under a condition, and which of its training images are anomalous."""
    rng = generator(seed, condition.name)
    count = len(features.training[0])
    wanted = min(condition.images or count, round(condition.share * count))
    normal = features.of(torch.randperm(count, generator=rng)[:wanted])
    anomalous = features.labels.nonzero().flatten()
    added = round(condition.contamination / (1 - condition.contamination) * wanted)
    added = min(added, len(anomalous) // 2)  # the others are tested
    moved = anomalous[torch.randperm(len(anomalous), generator=rng)[:added]]
    stay = torch.ones(len(features.labels), dtype=torch.bool)
    stay[moved] = False
    training = [
        torch.cat([one, level[moved]]) for one, level in zip(normal, features.test, strict=True)
    ]
    test = [level[stay] for level in features.test]
    foreign = torch.arange(wanted + added) >= wanted
    return SetFeatures(features.name, training, test, features.labels[stay]), foreign


def kept_run(folder: Path, name: str, what: str, seed: int, condition: Condition) -> Path:
    """Where a run is kept, so that a stopped measurement goes on where it was."""
    slug = condition.name.replace(" ", "-").replace("%", "percent")
    return folder / f"{name}-{what}-{seed}-{slug}.json"


def measured(features: SetFeatures, foreign: Tensor, seed: int) -> dict[str, dict[str, float]]:
    """The default's figures, and those after what it names as odd is left out (`--exclude-odd`)."""
    left, results = torch.arange(len(foreign)), {}
    while True:
        kept = SetFeatures(features.name, features.of(left), features.test, features.labels)
        parts, rate = parts_from(kept, seed), choose_rate(None, len(left))
        normal, _ = deviations(THE_DEFAULT, parts)
        odd = are_odd(softsign(normal, threshold(normal, rate)))
        found = figures(THE_DEFAULT, parts, features.labels, rate)
        results["odd left out"] = {
            **found,
            "left_out": float(len(foreign) - len(left)),
            "left_out_rightly": float(foreign.sum() - foreign[left].sum()),
            "foreign": float(foreign.sum()),
        }
        results.setdefault("as it is", results["odd left out"])
        if not odd.any() or len(left) - int(odd.sum()) < LEAST_KEPT * len(foreign):
            return results
        left = left[~odd]


def main() -> None:
    parser = data_arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    names = [each.name for each in CONDITIONS]
    parser.add_argument("--conditions", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    asked = [each for each in CONDITIONS if each.name in options.conditions]
    paths = find_sets(options.data, options.only)
    runs: list[dict[str, Any]] = []
    for path in TerminalProgress().track(paths, len(paths), "measuring hardship"):
        features = features_of(path, options.kept)
        for condition in asked:
            for seed in options.seeds:
                file = kept_run(options.kept, path.name, "hardship", seed, condition)
                if not file.exists():
                    found = measured(*drawn(features, condition, seed), seed)
                    write_text(file, json.dumps(found))
                results = json.loads(file.read_text())
                runs += [
                    {"set": path.name, "condition": condition.name, "seed": seed, "variant": name}
                    | {key: round(value, 4) for key, value in result.items()}
                    for name, result in results.items()
                ]
    told: dict[str, Any] = {
        "what": f"Few and contaminated images: the default on {len(paths)} data sets",
        "command": "python benchmarks/hardship.py --data DIR ... --seeds "
        + " ".join(map(str, options.seeds))
        + (f" --conditions {shlex.join(options.conditions)}" if len(asked) < len(names) else ""),
        **conditions("fast", options.seeds[0]),
        "hardships": [
            {"condition": condition.name, "variant": variant, **mean_of(chosen)}
            for condition in asked
            for variant in ("as it is", "odd left out")
            for chosen in (_figures(runs, condition.name, variant),)
        ],
        "runs": runs,
    }
    publish(told, options.out, "hardships")


def _figures(runs: list[dict[str, Any]], condition: str, variant: str) -> list[dict[str, float]]:
    return [
        {key: run[key] for key in ("image_auroc", "misses", "false_alarms")}
        for run in runs
        if (run["condition"], run["variant"]) == (condition, variant)
    ]


if __name__ == "__main__":
    main()
