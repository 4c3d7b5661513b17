"""Which readings of one pass, fused how? Every candidate on every data set, and what the choice is
worth on a set that it did not see.

python benchmarks/choice.py --data MVTEC FIELD \\
    --out docs/results/choice.json

A candidate is a subset of the five readings, a rule that makes one score of them, the number of
positions whose mean distance counts, and the statistics that readings are scaled by. Training
images are scored by cross-fitting, as the detector does it; nothing is learnt from test images.
The figure of a choice is leave-one-set-out: for each set the candidate with the best mean over the
others is taken, and only its figure on this set counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from conditions import conditions, publish
from safetensors.torch import load_file, save_file
from set_features import SetFeatures, data_arguments, features_of, find_sets
from sklearn.metrics import roc_auc_score
from torch import Tensor

from igd.backbones.features import Features
from igd.inference.conformal import threshold
from igd.progress import Progress, TerminalProgress
from igd.scales.bank import BankScale
from igd.scales.base import FeatureScale
from igd.scales.fusion import RobustScaler
from igd.scales.patch_features import SMALLEST, log_peak
from igd.scales.position import PositionScale
from igd.scales.scale_settings import BankSettings, PositionSettings, WholeSettings
from igd.scales.whole import WholeScale
from igd.training.calibrate import UPPER_SCORE
from igd.training.crossfit import cross_fit, distances_of, learn

TOPS = (1, 3, 10)  # positions whose mean distance counts
READINGS = ("shallow", "early", "fine", "late", "bank", "whole")
RATE = 0.05  # of false alarms, that misses are counted at
Scaling = Callable[[Tensor], RobustScaler]
SCALINGS: dict[str, Scaling] = {
    "median deviation": RobustScaler.fit,
    "upper deviation": partial(RobustScaler.fit_upper, quantile=UPPER_SCORE),
}


def _soft_maximum(scaled: Tensor, sharpness: float) -> Tensor:
    together: Tensor = torch.logsumexp(sharpness * scaled, dim=0)
    return (together - math.log(len(scaled))) / sharpness


RULES: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda scaled: scaled.mean(dim=0),
    "maximum": lambda scaled: scaled.amax(dim=0),
    **{f"soft maximum {s:g}": partial(_soft_maximum, sharpness=s) for s in (0.25, 0.5, 1, 2)},
}


@dataclass(frozen=True)
class Candidate:
    """One way of making a score."""

    readings: tuple[str, ...]
    rule: str
    top: int
    scaling: str


THE_DEFAULT = Candidate(READINGS, "soft maximum 0.5", 3, "upper deviation")


def candidates() -> list[Candidate]:
    """Every subset of the readings; a rule means nothing where there is but one."""
    subsets = [
        subset
        for count in range(1, len(READINGS) + 1)
        for subset in itertools.combinations(READINGS, count)
    ]
    return [
        Candidate(subset, rule, top, scaling)
        for subset in subsets
        for rule in (RULES if len(subset) > 1 else ("mean",))
        for top in TOPS
        for scaling in SCALINGS
    ]


def scales() -> list[FeatureScale]:
    return [
        PositionScale(PositionSettings()), BankScale(BankSettings()), WholeScale(WholeSettings())
    ]  # fmt: skip


def parts_of(features: SetFeatures, seed: int, kept: Path) -> dict[str, Tensor]:
    """Each reading's logarithms of distances, for every number of top positions: of training
    images, cross-fitted, and of test images.
    """
    file = kept / f"{features.name}-parts-{seed}.safetensors"
    if not file.exists():
        save_file(parts_from(features, seed), file)
    return load_file(file)


def parts_from(features: SetFeatures, seed: int) -> dict[str, Tensor]:
    """The same, computed."""
    fitted = scales()
    learning = Features(features.training, None)
    learn(fitted, learning, seed)
    measured = {
        "training": cross_fit(scales, learning, seed, Progress()),
        "test": distances_of(fitted, Features(features.test, None)),
    }
    return {
        f"{split} {name} {top}": _log_part(distance, top).contiguous()
        for split, distances in measured.items()
        for name, distance in zip(READINGS, itertools.chain(*distances), strict=True)
        for top in TOPS
    }


def _log_part(distance: Tensor, top: int) -> Tensor:
    return (distance + SMALLEST).log() if distance.dim() == 1 else log_peak(distance, top)


def deviations(candidate: Candidate, parts: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """One number for each training image, cross-fitted, and for each test image."""
    normal, test = [], []
    for name in candidate.readings:
        of_training = parts[f"training {name} {candidate.top}"]
        scaler = SCALINGS[candidate.scaling](of_training)
        normal.append(scaler(of_training))
        test.append(scaler(parts[f"test {name} {candidate.top}"]))
    rule = RULES[candidate.rule]
    return rule(torch.stack(normal)).double(), rule(torch.stack(test)).double()


def figures(
    candidate: Candidate, parts: dict[str, Tensor], labels: Tensor, rate: float = RATE
) -> dict[str, float]:
    """How well a candidate tells the test images of one set apart."""
    normal, scores = deviations(candidate, parts)
    alarms = scores > threshold(normal, rate)
    return {
        "image_auroc": float(roc_auc_score(labels, scores)),
        "misses": float((~alarms[labels == 1]).float().mean()),
        "false_alarms": float(alarms[labels == 0].float().mean()),
    }


def leave_one_out(auroc: Tensor) -> tuple[list[int], list[float]]:
    """For each set (column) the candidate (row) that is best on the others, and its figure here."""
    total = auroc.sum(dim=1)
    chosen = [int((total - auroc[:, number]).argmax()) for number in range(auroc.shape[1])]
    return chosen, [float(auroc[row, column]) for column, row in enumerate(chosen)]


def mean_of(results: Iterable[dict[str, float]]) -> dict[str, float]:
    every = list(results)
    return {key: sum(each[key] for each in every) / len(every) for key in every[0]}


def main() -> None:
    parser = data_arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    paths = find_sets(options.data, options.only)
    asked = candidates()
    by_set: dict[str, list[dict[str, float]]] = {}  # of each candidate, the mean over seeds
    for path in TerminalProgress().track(paths, len(paths), "measuring readings"):
        features = features_of(path, options.kept)
        parts = [parts_of(features, seed, options.kept) for seed in options.seeds]
        by_set[path.name] = [
            mean_of(figures(candidate, each, features.labels) for each in parts)
            for candidate in asked
        ]
    summary = summarise(asked, by_set)
    told: dict[str, Any] = {
        "what": f"{len(asked)} ways of fusing readings of one pass, {len(paths)} data sets",
        "command": "python benchmarks/choice.py --data DIR ... --seeds "
        + " ".join(map(str, options.seeds)),
        **conditions("fast", options.seeds[0]),
        **summary,
    }
    publish(told, options.out)


def summarise(asked: list[Candidate], by_set: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """The best candidates, the default among them, and what choosing is worth."""
    names = list(by_set)
    auroc = torch.tensor(
        [[by_set[name][row]["image_auroc"] for name in names] for row in range(len(asked))],
        dtype=torch.float64,
    )
    order = auroc.mean(dim=1).argsort(descending=True).tolist()
    chosen, unseen = leave_one_out(auroc)
    default = asked.index(THE_DEFAULT)

    def row(number: int) -> dict[str, Any]:
        every = {name: by_set[name][number] for name in names}
        return {
            "candidate": asdict(asked[number]),
            "rank": order.index(number) + 1,
            "mean": mean_of(every.values()),
            "worst": min(each["image_auroc"] for each in every.values()),
            "sets": {name: round(each["image_auroc"], 4) for name, each in every.items()},
        }

    one_change = [
        number
        for number, each in enumerate(asked)
        if number != default and _differences(each, THE_DEFAULT) == 1
    ]
    return {
        "sets": names,
        "leave_one_out": {
            "mean": sum(unseen) / len(unseen),
            "sets": {
                name: {"candidate": asdict(asked[row]), "image_auroc": figure}
                for name, row, figure in zip(names, chosen, unseen, strict=True)
            },
        },
        "best_of_all_in_sample": row(order[0]),
        "default": row(default),
        "one_change_from_the_default": [row(number) for number in one_change],
        "alone": [
            row(asked.index(replace(THE_DEFAULT, readings=(name,), rule="mean")))
            for name in READINGS
        ],
    }


def _differences(one: Candidate, other: Candidate) -> int:
    """Changes that lead from one candidate to another: a reading left out is one."""
    readings = len(set(one.readings) ^ set(other.readings))
    return readings + sum(
        getattr(one, name) != getattr(other, name) for name in ("rule", "top", "scaling")
    )


if __name__ == "__main__":
    main()
