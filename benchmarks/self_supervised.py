"""Encoders that learn from the normal images alone: what minutes buy, by contrast and by turns.

python benchmarks/self_supervised.py --data ~/.cache/igd-data/cifar10.npz --split test \\
    --ways rotation --steps 800 --kept DIR --out docs/results/self-supervised-cifar10.json

One encoder a class and way, scored as it learns by the Gaussian of its vectors that a detector on
small images has: of images as they are, and of all their turns together. As in from_scratch.py,
choices are made on held-out training images; of the test split the whole curve is told, and nothing
is chosen by it. Runs that are done are kept, and all that are kept go into the result.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from conditions import conditions, publish
from from_scratch import Held, divided
from torch import Tensor
from watching import EncoderWatch

from igd.backbones.architectures import Backbone
from igd.backbones.features import Features, FrozenBackbone, input_shape
from igd.files import write_text
from igd.pretraining import contrastive, rotation
from igd.pretraining.distillation import teacher_vectors
from igd.progress import Progress, TerminalProgress
from igd.scales.embedding import EmbeddingScale
from igd.scales.recipes import EmbeddingSettings

WATCHED = 5  # points of a curve, each after twice as many steps as the one before
VIEWS = {"as they are": False, "all turns": True}  # that a vector is of


class Way(NamedTuple):
    """To learn, with its settings in recipe `fast`."""

    learn: Callable[..., Any]
    settings: contrastive.Contrast | rotation.Rotation


WAYS = {
    "contrastive": Way(contrastive.contrast, contrastive.FAST),
    "contrastive, turned negatives": Way(
        contrastive.contrast, replace(contrastive.FAST, rotated=True)
    ),
    "rotation": Way(rotation.learn_rotation, rotation.FAST),
}


def vectors(look: FrozenBackbone, pixels: Tensor) -> Features:
    return Features([], teacher_vectors(look, pixels, Progress()), ())


def gaussian_auroc(encoder: Backbone, held: Held) -> dict[str, float]:
    """Of the detector's own Gaussian, by what the vectors are of."""
    found = {}
    for name, turned in VIEWS.items():
        seen = replace(encoder, turned=turned)
        shape = (held.learnt.shape[-2], held.learnt.shape[-1])
        look = FrozenBackbone(seen, input_shape(shape, seen), (), vector=True)
        scale = EmbeddingScale(EmbeddingSettings())
        scale.learn(vectors(look, held.learnt), torch.Generator())
        found[name] = held.auroc(scale.distances(vectors(look, held.scored))[0])
    return found


def run(held: Held, way: Way, steps: int, seed: int) -> list[dict[str, Any]]:
    """One encoder's curve."""
    watch = EncoderWatch(
        {max(1, steps // 2**power) for power in range(WATCHED)},
        lambda encoder: gaussian_auroc(encoder, held),
    )
    settings = replace(way.settings, steps=steps, seed=seed)
    way.learn(held.learnt, settings, TerminalProgress(), watch=watch)
    return [
        {"steps": each.step, "cpu_seconds": each.seconds, **each.measured} for each in watch.curve
    ]


def by_step(kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Classes side by side, for each way, length and what the vectors are of."""
    lengths = {(each["way"], each["of_steps"]): None for each in kept}
    students = []
    for way, of_steps in lengths:
        runs = [each for each in kept if (each["way"], each["of_steps"]) == (way, of_steps)]
        for view in VIEWS:
            points = [
                {
                    "steps": those[0]["steps"],
                    "cpu_seconds": round(float(np.mean([each["cpu_seconds"] for each in those]))),
                    "classes": [
                        {"class": run["class"], "auc": each[view]}
                        for run, each in zip(runs, those, strict=True)
                    ],
                }
                for those in zip(*(each["curve"] for each in runs), strict=True)
            ]
            told = f"{way}, {of_steps} steps, images {view}"
            students.append({"student": told, "curve": points})
    return students


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--split", choices=("train", "test"), default="train")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["rotation"])
    parser.add_argument("--steps", type=int, default=rotation.FAST.steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, required=True, help="folder of runs that are done")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    arrays = np.load(options.data)
    options.kept.mkdir(parents=True, exist_ok=True)
    start = f"encoder-{options.data.stem}-{options.split}"
    for way in options.ways:
        for number in options.classes:
            name = f"{start}-{way}-{number}-{options.steps}-{options.seed}.json"
            file = options.kept / name.replace(" ", "-")
            if not file.exists():
                held = divided(arrays, number, options.split, options.seed)
                curve = run(held, WAYS[way], options.steps, options.seed)
                told = {"way": way, "class": number, "of_steps": options.steps, "curve": curve}
                write_text(file, json.dumps(told))
    every = sorted(options.kept.glob(f"{start}-*-{options.seed}.json"))
    kept = [json.loads(file.read_text()) for file in every]
    result = {
        "what": f"{options.data.stem}: encoders that learn from the images of one class alone, "
        f"{'held-out training images' if options.split == 'train' else 'test split'}",
        "command": "; ".join(commands(kept, options)),
        **conditions("fast", options.seed),
        "students": by_step(kept),
    }
    publish(result, options.out, "students")


def commands(kept: list[dict[str, Any]], options: argparse.Namespace) -> list[str]:
    """What makes the runs that are kept, one command a way and length."""
    classes: dict[tuple[str, int], list[int]] = {}
    for each in kept:
        classes.setdefault((each["way"], each["of_steps"]), []).append(each["class"])
    return [
        f"python benchmarks/self_supervised.py --data {options.data.name} --split {options.split} "
        f"--classes {' '.join(map(str, numbers))} --ways {way!r} --steps {steps} "
        f"--seed {options.seed}"
        for (way, steps), numbers in classes.items()
    ]


if __name__ == "__main__":
    main()
