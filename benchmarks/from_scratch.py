"""Time to quality from scratch: AUROC against steps, for settings of the paper's auto-encoder.

python benchmarks/from_scratch.py --data ~/.cache/igd-data/cifar10.npz --classes 1 3 7 \\
    --variants 'batch 64' 'batch 16' --kept DIR --out docs/results/from-scratch-cifar10.json

Choices see no test image: a normal class's training images are divided into those that are learnt
from and those that are held out, and the latter are told from training images of the other classes.
One run a variant and class, scored as it goes on; runs that are done are kept, one that was stopped
goes on where it was, and all that are done go into the result. What was chosen is scored on the
test split, once, at the end:

python benchmarks/from_scratch.py --data ~/.cache/igd-data/cifar10.npz --split test \\
    --variants 'batch 16' --kept DIR --out docs/results/from-scratch-cifar10-test.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import torch
from conditions import conditions
from detail import mahalanobis
from held_out import SCALING, Held, class_arguments, divided
from torch import Tensor

from igd.benchmark.run import digest
from igd.files import write_text
from igd.files.checkpoint_file import Checkpoint
from igd.method.em import train
from igd.method.gaussian import anomaly, squared_distance
from igd.method.objective import OBJECTIVES, SMALLEST_VARIANCE, Objective
from igd.method.reconstruction import reconstruction_error
from igd.method.schedule import Training
from igd.method.scoring import scale_score
from igd.method.training_state import TrainingState
from igd.progress import Progress, TerminalProgress
from igd.rng import spread
from igd.scales.autoencoder import DESCRIBED, AutoEncoderScale
from igd.scales.encoder_statistics import EncoderStatistics, detail
from igd.scales.fusion import RobustScaler
from igd.scales.recipes import RECIPES
from igd.scales.samples import FeatureSamples
from igd.scales.scale_settings import AutoEncoderSettings
from igd.training.checkpoint import restore_state, state_tensors
from igd.training.distributed import make_fabric

POINTS = (0, 125, 250, 500, 1000, 2000, 4000, 8000, 16000)  # steps of 64 images to score after
BATCH = 64
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # of l_h in the score
UPPER = 0.9  # the quantile that scales logarithms of l_r, of latents' distances and of detail,
WITH_DETAIL = (1.0, 0.5, 1.0)  # and their weights where detail joins in
AT_ONCE = 512
STATE, TOLD = "state", "told"  # of a checkpoint
LEARNT = 2048  # images that the centre and the statistics are taken from

# What differs from 64 images a step, by the fields of settings, training and objective. 'batch 16'
# at 250 is what `fast` does today.
VARIANTS: dict[str, dict[str, Any]] = {
    "batch 64": {},
    "no floor": {"variance_floor": SMALLEST_VARIANCE},
    "no limit": {"balance": None},
    "no online E-step": {"online_rate": None},
    "rate 3e-3": {"learning_rate": 3e-3},
    "rate 3e-4": {"learning_rate": 3e-4},
    "batch 16": {"batch_size": 16},
    "batch 16, bf16": {"batch_size": 16, "precision": "bf16-mixed"},
    "warm-up": {"batch_size": 16, "warm_up": 0.05},
    "latent 16": {"latent_size": 16},
    "width 32": {"width": 32},
    "no interpolation": {"interpolation": False},
    **{
        f"batch 16, {name}": {"batch_size": 16, "objective": name}
        for name in ("rec+gac", "rec", "mse")
    },
    "paper": {"recipe": "paper"},
    "paper, bf16": {"recipe": "paper", "precision": "bf16-mixed"},
    "paper, width 16": {"recipe": "paper", "width": 16},
}


def changed(variant: str, steps: int, seed: int) -> tuple[AutoEncoderSettings, Objective]:
    """Settings and objective of `fast` from scratch on small images, or of the recipe that a
    variant names, with its changes; the steps are as many as see the images that `steps` of 64 see.
    """
    told = {"batch_size": BATCH, "seed": seed, **VARIANTS[variant]}
    told.pop("precision", None)
    settings, objective = (
        RECIPES[told.pop("recipe", "fast")].small[0],
        OBJECTIVES[told.pop("objective", "igd")],
    )
    assert isinstance(settings, AutoEncoderSettings)
    told["steps"] = steps * BATCH // told["batch_size"]
    of_training, of_settings, of_objective = (
        {field.name: told[field.name] for field in fields(each) if field.name in told}
        for each in (Training, AutoEncoderSettings, Objective)
    )
    assert len(of_training) + len(of_settings) + len(of_objective) == len(told), variant
    training = replace(settings.training, **of_training)
    # What a variant's encoder knows at every depth is measured whatever its objective.
    settings = replace(settings, training=training, statistics=False, **of_settings)
    return settings, replace(objective, **of_objective)


def run(
    held: Held,
    settings: AutoEncoderSettings,
    objective: Objective,
    points: Sequence[int],
    saved: Checkpoint,
    precision: str = "32-true",
) -> list[dict[str, Any]]:
    """One training, from its beginning or its checkpoint, scored at these points and at its end."""
    training, side, channels = settings.training, held.learnt.shape[-1], held.learnt.shape[1]
    scale = AutoEncoderScale(settings, objective, side, channels)
    samples = scale.samples(held.learnt)
    state = scale.start(samples)
    curve: list[dict[str, Any]] = []
    started, scoring = time.process_time(), 0.0
    if saved.load():
        kept = saved.part(STATE)
        told = json.loads(bytes(kept.pop(TOLD).tolist()))
        restore_state(state, kept)
        curve, started = told["curve"], started - told["cpu_seconds"]

    def score(state: TrainingState) -> None:
        nonlocal scoring
        seen = state.step * training.batch_size / BATCH
        if seen not in points and state.step != len(state.history):
            return
        seconds = time.process_time() - started - scoring
        losses = state.history[state.step // 2 : state.step, :2].mean(dim=0)
        told = {
            "steps": state.step,
            "images": state.step * training.batch_size,
            "cpu_seconds": round(seconds, 1),
            "mean l_h": round(float(losses[0]), 4) if state.step else None,
            "mean l_r": round(float(losses[1]), 4) if state.step else None,
            "sigma^2": round(float(state.descriptor.variance), 5) if state.descriptor else None,
        }
        curve.append({**told, **figures(scale, samples, held)})
        scoring = time.process_time() - started - seconds

    def keep() -> dict[str, Tensor]:
        told = {"curve": curve, "cpu_seconds": time.process_time() - started - scoring}
        written = torch.tensor(list(json.dumps(told).encode()), dtype=torch.uint8)
        return {**state_tensors(state), TOLD: written}

    def after_step(state: TrainingState) -> None:
        score(state)
        saved.keep(STATE, keep, Progress(), at_once=False)

    if not curve:
        score(state)
    fabric = make_fabric("cpu", precision)
    train(state, samples, objective, settings.similarity, training, fabric, after_step)
    return curve


@torch.no_grad()
def figures(scale: AutoEncoderScale, samples: FeatureSamples, held: Held) -> dict[str, float]:
    """AUROC of the score at each share of l_h, of what images show without any network, and of the
    statistics that `fast` reads in place of l_h.
    """
    learnt, seen = (
        samples.batch(torch.arange(min(len(samples), LEARNT))),
        scale.samples(held.scored),
    )
    encode, statistics = scale.autoencoder.encoder.with_maps, EncoderStatistics()
    latents = [encode(part)[0] for part in learnt.encoder_input.split(AT_ONCE)]
    described = map(samples.batch, spread(len(samples), DESCRIBED).split(AT_ONCE))
    statistics.learn((each.image, encode(each.encoder_input)[1]) for each in described)
    centre = torch.cat(latents).mean(dim=0)
    errors, latents, details, distances = [], [], [], []
    for part in torch.arange(len(seen)).split(AT_ONCE):
        batch = seen.batch(part)
        each, maps = encode(batch.encoder_input)
        reconstruction = scale.autoencoder.decoder(each)
        errors.append(
            reconstruction_error(batch.image, reconstruction, scale.settings.similarity).clamp(
                max=1
            )
        )
        latents.append(each)
        details.append(detail(batch.image))
        distances.append(torch.stack([*statistics.distances(batch.image, maps).values()]))
    error, latent, shown = torch.cat(errors), torch.cat(latents), torch.cat(details)
    channels, own = torch.cat(distances, dim=1)
    variance = squared_distance(latent[:SCALING], centre).median()
    terms = [error, anomaly(latent, centre, variance)]
    scaled = [RobustScaler.fit(term[:SCALING])(term) for term in terms]
    found = {
        f"share {share:g}": held.auroc(scale_score(scaled, [1 - share, share])) for share in SHARES
    }
    distance = mahalanobis(shown, detail(learnt.image)).float()
    found["detail alone"] = held.auroc(distance)
    three = [each.log() for each in (error, squared_distance(latent, centre), distance)]
    deviations = [RobustScaler.fit_upper(each[:SCALING], UPPER)(each) for each in three]
    found["with detail"] = held.auroc(scale_score(deviations, WITH_DETAIL))
    found["statistics alone"] = held.auroc(channels)
    fast = [RobustScaler.fit(each[:SCALING])(each) for each in (error, channels, own)]
    found["l_r, statistics"] = held.auroc(scale_score(fast[:2], [1.0, 1.0]))
    found["l_r, statistics, detail"] = held.auroc(scale_score(fast, [1.0, 1.0, 1.0]))
    return found


def main() -> None:
    parser = class_arguments(__doc__)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=250, help="of 64 images")
    parser.add_argument("--share", type=float, default=1.0, help="of the images to learn from")
    options = parser.parse_args()
    arrays = np.load(options.data)
    asked = [(variant, number) for variant in options.variants for number in options.classes]
    options.kept.mkdir(parents=True, exist_ok=True)
    for variant, number in TerminalProgress().track(asked, len(asked), "training"):
        name = f"{options.data.stem}-{options.split}-{variant}-{number}-{options.steps}"
        if options.share < 1:
            name += f"-{options.share:g}"
        file = options.kept / f"{name.replace(' ', '-')}-{options.seed}.json"
        if not file.exists():
            held = divided(arrays, number, options.split, options.seed, options.share)
            points = POINTS if options.split == "train" else ()
            settings, objective = changed(variant, options.steps, options.seed)
            numbers = {"settings": asdict(settings), "objective": asdict(objective)}
            path = file.with_suffix(".checkpoint")
            saved = Checkpoint(path, digest([file.stem, numbers]), {"parameters": numbers})
            precision = VARIANTS[variant].get("precision", "32-true")
            curve = run(held, settings, objective, points, saved, precision)
            told = {"variant": variant, "class": number, "of_steps": options.steps}
            told |= {"share": options.share, "curve": curve}
            write_text(file, json.dumps(told))
            path.unlink(missing_ok=True)
    every = sorted(options.kept.glob(f"{options.data.stem}-{options.split}-*-{options.seed}.json"))
    kept = [json.loads(file.read_text()) for file in every]
    recipes = {VARIANTS[each["variant"]].get("recipe", "fast") for each in kept}
    result = {
        "what": f"{options.data.stem}: IGD from scratch as training goes on, "
        f"{'held-out training images' if options.split == 'train' else 'test split'}",
        "command": "; ".join(commands(kept, options)),
        **conditions(", ".join(sorted(recipes)), options.seed),
        "split": options.split,
        "time_to_quality": kept,
    }
    if options.out:
        write_text(options.out, json.dumps(result, indent=1) + "\n")


def commands(kept: list[dict[str, Any]], options: argparse.Namespace) -> list[str]:
    """What makes the runs that are kept, one command a variant and length."""
    classes: dict[tuple[str, int, float], list[int]] = {}
    for each in kept:
        key = (each["variant"], each["of_steps"], each.get("share", 1.0))
        classes.setdefault(key, []).append(each["class"])
    return [
        f"python benchmarks/from_scratch.py --data {options.data.name} --split {options.split} "
        f"--classes {' '.join(map(str, sorted(numbers)))} --variants {variant!r} --steps {steps} "
        f"--seed {options.seed}{f' --share {share:g}' if share < 1 else ''}"
        for (variant, steps, share), numbers in classes.items()
    ]


if __name__ == "__main__":
    main()
