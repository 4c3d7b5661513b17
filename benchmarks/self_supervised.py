"""Encoders that learn from the normal images alone: what minutes buy, by contrast and by turns.

python benchmarks/self_supervised.py --data ~/.cache/igd-data/cifar10.npz --split test \\
    --ways rotation --steps 6400 --precision bf16-mixed --kept DIR \\
    --out docs/results/self-supervised-cifar10.json

One encoder a class and way, scored as it learns by what a detector on small images has of its
vectors: a Gaussian of images as they are, one of all their turns together, this with how well they
are told apart, and all that of two views. As in from_scratch.py, choices are made on held-out
training images; of the test split the whole curve is told, and nothing is chosen by it. Runs that
are done are kept, and all that are kept go into the result.
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
import torch.nn.functional as F
from conditions import conditions, publish
from held_out import Held, class_arguments, divided
from torch import Tensor
from watching import EncoderWatch

from igd.backbones.architectures import TURNS, Backbone, mirrored_middle
from igd.backbones.features import Features, FrozenBackbone, input_shape
from igd.files import write_text
from igd.pretraining import contrastive, rotation
from igd.pretraining.distillation import teacher_vectors
from igd.pretraining.encoder_training import Precision
from igd.pretraining.encoders import save_encoder
from igd.progress import Progress, TerminalProgress
from igd.scales.embedding import EmbeddingScale
from igd.scales.scale_settings import EmbeddingSettings
from igd.training.parameters import PRECISIONS

WATCHED = 3  # points of a curve, each after twice as many steps as the one before


class View(NamedTuple):
    """What a vector is of, and whether how well its turns are told apart counts."""

    turned: bool
    twice: bool = False
    told: bool = False


VIEWS = {
    "as they are": View(turned=False),
    "all turns": View(turned=True),
    "all turns, told apart": View(turned=True, told=True),
    "all turns twice, told apart": View(turned=True, twice=True, told=True),  # `fast`
}


class Way(NamedTuple):
    """To learn, with its settings in recipe `fast`."""

    learn: Callable[..., Any]
    settings: contrastive.Contrast | rotation.Rotation

    @property
    def steps(self) -> int:
        """As many as the recipe has."""
        assert self.settings.steps is not None
        return self.settings.steps


WAYS = {
    "contrastive": Way(contrastive.contrast, contrastive.FAST),
    "contrastive, rotated": Way(contrastive.contrast, contrastive.FAST_ROTATED),
    "rotation": Way(rotation.learn_rotation, rotation.FAST),
}


def vectors(encoder: Backbone, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Of images in all turns, once and twice seen: (n, 4, d) each."""
    once = replace(encoder, turned=True, seen_twice=False)
    look = FrozenBackbone(once, input_shape((pixels.shape[-2], pixels.shape[-1]), once), (), True)
    middle = mirrored_middle(pixels.float())
    whole, parts = (
        teacher_vectors(look, each, Progress()).unflatten(1, (TURNS, -1))
        for each in (pixels, middle)
    )
    return whole, F.normalize(whole + parts, dim=2)


def aurocs(encoder: Backbone, held: Held) -> dict[str, float]:
    """Of the detector's own scores, by what the vectors are of."""
    learnt, scored = vectors(encoder, held.learnt), vectors(encoder, held.scored)
    found = {}
    for name, view in VIEWS.items():
        turns = TURNS if view.turned else 1
        some, others = (
            Features([], each[view.twice][:, :turns].flatten(1), ()) for each in (learnt, scored)
        )
        scale = EmbeddingScale(EmbeddingSettings(turns=view.told))
        scale.learn(some, torch.Generator())
        found[name] = held.auroc(scale.output(scale.distances(others), (0, 0)).parts[0])
    return found


class Asked(NamedTuple):
    """What runs of several classes have in common."""

    way: str
    steps: int
    precision: Precision


def run(held: Held, asked: Asked, seed: int, stem: Path) -> list[dict[str, Any]]:
    """One encoder's curve; the encoder itself is kept wherever it is scored."""
    way, steps, precision = asked

    def measure(encoder: Backbone) -> dict[str, float]:
        save_encoder(stem.with_name(f"{stem.name}-at-{encoder.identity}.encoder"), encoder, {})
        return aurocs(encoder, held)

    watch = EncoderWatch({max(1, steps // 2**power) for power in range(WATCHED)}, measure)
    settings = replace(WAYS[way].settings, steps=steps, precision=precision, seed=seed)
    WAYS[way].learn(held.learnt, settings, TerminalProgress(), watch=watch)
    return [
        {"steps": each.step, "cpu_seconds": each.seconds, **each.measured} for each in watch.curve
    ]


def alike(kept: list[dict[str, Any]]) -> dict[Asked, list[dict[str, Any]]]:
    """The runs that differ in the class alone, together."""
    together: dict[Asked, list[dict[str, Any]]] = {}
    for each in kept:
        asked = Asked(*(each[name] for name in Asked._fields))
        together.setdefault(asked, []).append(each)
    return together


def by_step(kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Classes side by side, for each way, length and what the vectors are of."""
    students = []
    for asked, runs in alike(kept).items():
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
            told = f"{asked.way}, {asked.steps} steps, {asked.precision}, images {view}"
            students.append({"student": told, "curve": points})
    return students


def main() -> None:
    parser = class_arguments(__doc__)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["rotation"])
    parser.add_argument("--steps", type=int, help="default: a way's own in recipe fast")
    parser.add_argument("--precision", choices=PRECISIONS, default="32-true")
    options = parser.parse_args()
    arrays = np.load(options.data)
    options.kept.mkdir(parents=True, exist_ok=True)
    start = f"encoder-{options.data.stem}-{options.split}"
    for way in options.ways:
        asked = Asked(way, options.steps or WAYS[way].steps, options.precision)
        for number in options.classes:
            name = f"{start}-{way}-{number}-{asked.steps}-{asked.precision}-{options.seed}.json"
            file = options.kept / name.replace(" ", "-")
            if not file.exists():
                held = divided(arrays, number, options.split, options.seed)
                curve = run(held, asked, options.seed, file.with_suffix(""))
                told = {**asked._asdict(), "class": number, "curve": curve}
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
    """What makes the runs that are kept, one command for those that are alike."""
    return [
        f"python benchmarks/self_supervised.py --data {options.data.name} --split {options.split} "
        f"--classes {' '.join(str(each['class']) for each in runs)} --ways {asked.way!r} "
        f"--steps {asked.steps} --precision {asked.precision} --seed {options.seed}"
        for asked, runs in alike(kept).items()
    ]


if __name__ == "__main__":
    main()
