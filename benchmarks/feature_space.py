"""The paper's objective in feature space: encoder, decoder, Gaussian descriptor and critic on the
patches of a frozen backbone, and what each term is worth there.

python benchmarks/feature_space.py --data MVTEC FIELD \\
    --objectives mse rec rec+gac igd --seeds 0 1 2 --steps 700 2100 4200 \\
    --out docs/results/feature-space-long.json

Patches are the fine level's features, each block of unit length, pooled over 3x3 positions, white.
The auto-encoder is an MLP, l_r is the cosine distance and the mean absolute error of features (MSE
for the ablation of that name), l_h the Gaussian anomaly of latents, of all or of those at the same
place ('per position'), the critic an MLP on decoded patches; weights are the paper's, or l_h's pull
on the latents is limited ('balanced'), as `fast` does it. The map of an image is l_r of its
patches, or l_h, or the paper's sum of both. 'Whole' is the paper's global model: the same of one
vector an image, the mean and the deviation of its patches.

A fifth of the training images is held out and scales the reading, so that it can join the readings
of the default in their soft maximum: 'fused' is what the default becomes with it. One run a set,
objective and seed, scored at several numbers of steps; runs that are done are kept beside the
features, so that a stopped measurement goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from choice import READINGS, RULES, SCALINGS, THE_DEFAULT, parts_of
from conditions import conditions, publish
from feature_autoencoder import BATCH, TOP, scores, train
from hardship import CONDITIONS, drawn, kept_run
from set_features import SetFeatures, data_arguments, features_of, find_sets
from sklearn.metrics import roc_auc_score
from torch import Tensor

from igd.benchmark.differences import interval
from igd.files import write_text
from igd.method.objective import OBJECTIVES
from igd.progress import TerminalProgress
from igd.rng import generator
from igd.scales.bank import WHITENED_ON, covariance, whitening
from igd.scales.patch_features import unit_features
from igd.scales.scale_settings import FINE

IMAGES = 64  # of a batch of whole images: the paper's
RIDGE = 0.1  # of the whitening
STEPS = (700,)  # that it is scored after: about 10 s of a plain auto-encoder, 20 s of IGD
PER_POSITION, WHOLE = "per position", "whole"
ABLATION = (
    *("mse", "rec", "rec+gac", "igd", "rec+gac balanced", "igd balanced"),
    *(f"{name} {PER_POSITION}" for name in ("igd", "igd balanced")),
    *(f"{name} {WHOLE}" for name in ("mse", "rec", "rec+gac", "igd", "igd balanced")),
)
FIGURES = ("l_r", "l_h", "sum", "default", *(f"fused with {t}" for t in ("l_r", "l_h", "sum")))
PAIRS = (
    ("rec", "mse"),
    ("rec+gac", "rec"),
    ("igd", "rec+gac"),
    ("igd", "mse"),
    ("rec+gac balanced", "rec"),
    ("igd balanced", "rec+gac balanced"),
    ("igd balanced", "mse"),
    (f"igd {PER_POSITION}", "igd"),
    (f"igd balanced {PER_POSITION}", "igd balanced"),
    (f"rec {WHOLE}", f"mse {WHOLE}"),
    (f"rec+gac {WHOLE}", f"rec {WHOLE}"),
    (f"igd {WHOLE}", f"rec+gac {WHOLE}"),
)
HELD_OUT = 5  # one image in so many scales the reading


def patches_of(levels: list[Tensor], whole: bool = False) -> Tensor:
    """The fine level's patches, pooled, or one vector for all of an image's: (n, rows, columns,
    d).
    """
    together = unit_features([levels[number] for number in FINE])
    patches = F.avg_pool2d(together, 3, 1, 1).permute(0, 2, 3, 1)
    if not whole:
        return patches
    deviation, mean = torch.std_mean(patches, dim=(1, 2), keepdim=True)
    return torch.cat([mean, deviation], dim=3)


def held_out_and_learnt(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """The numbers of the training images that scale a reading, and of those it learns from."""
    order = torch.randperm(count, generator=generator(seed, "hold out"))
    held_out, learnt = order.split([count // HELD_OUT, count - count // HELD_OUT])
    return held_out, learnt


def white_patches(
    features: SetFeatures, learnt: Tensor, held_out: Tensor, whole: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Patches of images that are learnt from, of test images and of held-out ones, made white by
    the first: (n, rows, columns, d) each.
    """
    training = patches_of(features.of(learnt), whole)
    rows = training.flatten(0, 2)
    mean = rows.mean(dim=0)
    drawn = (rows - mean)[:: max(1, len(rows) // WHITENED_ON)]
    whitener = whitening(covariance(drawn), RIDGE)
    training, test, scaling = (
        (each - mean) @ whitener
        for each in (
            training,
            patches_of(features.test, whole),
            patches_of(features.of(held_out), whole),
        )
    )
    return training, test, scaling


def run(
    features: SetFeatures,
    name: str,
    seed: int,
    default: dict[str, Tensor] | None,
    scored_at: Sequence[int] = STEPS,
) -> list[dict[str, Any]]:
    """One training, scored now and then; `default` has the readings of the default, to be fused
    with.
    """
    objective = OBJECTIVES[name.partition(" ")[0]]
    held_out, learnt = held_out_and_learnt(len(features.training[0]), seed)
    whole = name.endswith(WHOLE)
    training, test, scaling = white_patches(features, learnt, held_out, whole)
    number, rows, columns, _ = training.shape
    place = torch.arange(rows * columns)
    if not name.endswith(PER_POSITION):
        place = torch.zeros_like(place)
    white = training.flatten(0, 2)
    order = torch.randperm(len(white), generator=generator(seed, "patches"))
    results, started = [], time.process_time()
    trained = train(
        white[order],
        place.repeat(number)[order],
        objective,
        " balanced" in name,
        seed,
        scored_at,
        IMAGES if whole else BATCH,
    )
    for steps, nets, omega in trained:
        seconds = time.process_time() - started
        of_test = scores(nets, omega, test, place, objective)
        figures = {term: auroc(features, each) for term, each in of_test.items()}
        if default:
            of_normal = scores(nets, omega, scaling, place, objective)
            figures["default"] = auroc(features, together(default))
            figures |= {
                f"fused with {term}": auroc(features, together(default, (of_normal[term], each)))
                for term, each in of_test.items()
            }
        results.append({"steps": steps, "cpu_seconds": round(seconds, 1), **figures})
        started += time.process_time() - started - seconds  # scoring does not count
    return results


def auroc(features: SetFeatures, values: Tensor) -> float:
    return round(float(roc_auc_score(features.labels, values)), 4)


def together(default: dict[str, Tensor], *others: tuple[Tensor, Tensor]) -> Tensor:
    """The default's soft maximum over its readings and others, each of normal and of test images:
    of the test images.
    """
    scaling = SCALINGS[THE_DEFAULT.scaling]
    readings = [
        (default[f"training {name} {TOP}"], default[f"test {name} {TOP}"]) for name in READINGS
    ]
    scaled = [scaling(normal)(test) for normal, test in (*readings, *others)]
    return RULES[THE_DEFAULT.rule](torch.stack(scaled))


def main() -> None:
    parser = data_arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    names = [each.name for each in CONDITIONS]
    parser.add_argument("--condition", choices=names, default=names[0])
    parser.add_argument("--objectives", nargs="+", choices=ABLATION, default=list(ABLATION))
    parser.add_argument("--steps", type=int, nargs="+", default=list(STEPS), help="to score after")
    options = parser.parse_args()
    condition = next(each for each in CONDITIONS if each.name == options.condition)
    paths = find_sets(options.data, options.only)
    asked = [(path, seed, name) for seed in options.seeds for path in paths
             for name in options.objectives]  # fmt: skip
    runs = []
    for path, seed, name in TerminalProgress().track(asked, len(asked), "training"):
        file = kept_run(options.kept, path.name, f"{name}-{max(options.steps)}", seed, condition)
        if not file.exists():
            everything = features_of(path, options.kept)
            whole = condition == CONDITIONS[0]
            default = parts_of(everything, seed, options.kept) if whole else None
            features, _ = drawn(everything, condition, seed)
            write_text(file, json.dumps(run(features, name, seed, default, options.steps)))
        runs += [
            {"set": path.name, "seed": seed, "objective": name, **each}
            for each in json.loads(file.read_text())
        ]
    alone = all(name.endswith(WHOLE) for name in options.objectives)
    told: dict[str, Any] = {
        "what": f"The paper's objective on {'one vector an image' if alone else 'patches'} of "
        f"frozen features, {len(paths)} data sets, {condition.name}, {len(options.seeds)} seeds",
        "command": f"python benchmarks/feature_space.py --data DIR ... --condition "
        f"'{condition.name}' --seeds {' '.join(map(str, options.seeds))} "
        f"--objectives {' '.join(map(repr, options.objectives))} "
        f"--steps {' '.join(map(str, options.steps))}",
        **conditions("fast", options.seeds[0]),
        "condition": condition.name,
        "ablation": summary(runs, options.steps),
        **({"leave_one_set_out": left_out(runs)} if condition == CONDITIONS[0] else {}),
        "runs": runs,
    }
    publish(told, options.out, "ablation")


def summary(runs: list[dict[str, Any]], scored_at: Sequence[int]) -> dict[str, Any]:
    """Means over sets of every figure, what each term adds to l_r, and what the reading adds to the
    default, each with its interval.
    """
    told: dict[str, Any] = {}
    for steps in scored_at:
        means: dict[str, dict[str, float]] = {}
        differences: dict[str, Any] = {}
        for name in ABLATION:
            of_name = [each for each in runs if (each["objective"], each["steps"]) == (name, steps)]
            for term in sorted({key for each in of_name for key in each} & set(FIGURES)):
                figures = by_set(of_name, term)
                means.setdefault(name, {})[term] = round(float(np.mean(list(figures.values()))), 4)
                if term.startswith("fused"):
                    compared = difference(figures, by_set(of_name, "default"))
                    differences[f"{name}, {term} - default"] = compared
        for one, other in PAIRS:
            if one in means and other in means:
                pair = (
                    by_set([each for each in runs if (each["objective"], each["steps"]) == key],
                            "l_r")
                    for key in ((one, steps), (other, steps))
                )  # fmt: skip
                differences[f"{one} - {other}, l_r"] = difference(*pair)
        told[f"{steps} steps"] = {"means": means, "differences": differences}
    return told


def left_out(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What is reached on each set by what is best on the others: the default, or the default with
    one of the readings.
    """
    figures = {"default": by_set(runs, "default")}
    for run in runs:
        name, steps = run["objective"], run["steps"]
        for term in [key for key in run if key.startswith("fused")]:
            if f"{name}, {steps} steps, {term}" not in figures:
                those = [
                    each for each in runs if (each["objective"], each["steps"]) == (name, steps)
                ]
                figures[f"{name}, {steps} steps, {term}"] = by_set(those, term)
    chosen, reached = {}, {}
    for left in figures["default"]:
        others = {
            name: np.mean([value for key, value in of_sets.items() if key != left])
            for name, of_sets in figures.items()
        }
        best = max(others, key=lambda name: others[name])
        chosen[left], reached[left] = best, round(figures[best][left], 4)
    return {
        "candidates": len(figures),
        "mean": round(float(np.mean(list(reached.values()))), 4),
        "beside_default": difference(reached, figures["default"]),
        "chosen": chosen,
        "reached": reached,
    }


def by_set(runs: list[dict[str, Any]], term: str) -> dict[str, float]:
    """The mean over seeds of a figure on each set."""
    return {
        name: float(np.mean([each[term] for each in runs if each["set"] == name]))
        for name in sorted({each["set"] for each in runs})
    }


def difference(one: dict[str, float], other: dict[str, float]) -> dict[str, Any]:
    differences = [one[name] - other[name] for name in one if name in other]
    return {
        # Two more digits than are told: what is rounded twice is wrong in the last.
        "mean": round(float(np.mean(differences)), 6),
        "interval": [round(each, 6) for each in interval(differences)],
        "sets_better": sum(each > 0 for each in differences),
        "sets": len(differences),
    }


if __name__ == "__main__":
    main()
