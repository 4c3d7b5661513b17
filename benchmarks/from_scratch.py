"""Time to quality from scratch: AUROC against steps, for settings of the paper's auto-encoder.

python benchmarks/from_scratch.py --data ~/.cache/igd-data/cifar10.npz --classes 1 3 7 \\
    --variants fast 'no limit' --kept DIR --out docs/results/from-scratch-cifar10.json

Nothing here sees the test split: a normal class's training images are divided into those that are
learnt from and those that are held out, and the latter are told from training images of the other
classes. One run a variant and class, scored as it goes on; runs that are done are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conditions import conditions
from detail import detail, mahalanobis
from numpy.typing import NDArray
from pretraining import as_pixels
from sklearn.metrics import roc_auc_score
from torch import Tensor

from igd.files import write_text
from igd.method.em import train
from igd.method.gaussian import anomaly, squared_distance
from igd.method.objective import OBJECTIVES, SMALLEST_VARIANCE, Objective
from igd.method.reconstruction import reconstruction_error
from igd.method.schedule import Training
from igd.method.scoring import scale_score
from igd.method.training_state import TrainingState
from igd.progress import TerminalProgress
from igd.rng import generator
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.fusion import RobustScaler
from igd.scales.recipes import RECIPES, AutoEncoderSettings
from igd.scales.samples import FeatureSamples
from igd.training.distributed import make_fabric

SCALING, NORMAL, OTHERS = 250, 500, 1000  # held out: to scale by, and to be told apart
POINTS = (0, 125, 250, 500, 1000, 2000, 4000)  # steps of 64 images to score after
BATCH = 64
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # of l_h in the score
AT_ONCE = 512
LEARNT = 2048  # images that the centre and the statistics are taken from

# What differs from the recipe `fast`, by the fields of settings, training and objective.
VARIANTS: dict[str, dict[str, Any]] = {
    "fast": {},
    "no floor": {"variance_floor": SMALLEST_VARIANCE},
    "no limit": {"balance": None},
    "no online E-step": {"online_rate": None},
    "rate 3e-3": {"learning_rate": 3e-3},
    "rate 3e-4": {"learning_rate": 3e-4},
    "batch 16": {"batch_size": 16},
    "latent 16": {"latent_size": 16},
    "width 32": {"width": 32},
    "no interpolation": {"interpolation": False},
}


class Held:
    """A normal class's training images, and those held out beside some of the other classes."""

    def __init__(self, pixels: Tensor, labels: NDArray[Any], number: int, seed: int) -> None:
        rng = generator(seed, "hold out", number)
        normal = torch.from_numpy(np.flatnonzero(labels == number))
        others = torch.from_numpy(np.flatnonzero(labels != number))
        normal = normal[torch.randperm(len(normal), generator=rng)]
        others = others[torch.randperm(len(others), generator=rng)[:OTHERS]]
        self.learnt = pixels[normal[SCALING + NORMAL :]]
        self.scored = pixels[torch.cat([normal[: SCALING + NORMAL], others])]

    def auroc(self, values: Tensor) -> float:
        """Of the scores of what is held out, without the images to scale by."""
        anomalous = torch.arange(NORMAL + OTHERS) >= NORMAL
        return round(float(roc_auc_score(anomalous, values[SCALING:])), 4)


def changed(variant: str, steps: int, seed: int) -> tuple[AutoEncoderSettings, Objective]:
    """Settings and objective of `fast` from scratch on small images, with a variant's changes; the
    steps are as many as see the images that `steps` of 64 see.
    """
    settings, objective = RECIPES["fast"].small[0], OBJECTIVES["igd"]
    assert isinstance(settings, AutoEncoderSettings)
    told = {"batch_size": BATCH, "seed": seed, **VARIANTS[variant]}
    told["steps"] = steps * BATCH // told["batch_size"]
    of_training, of_settings, of_objective = (
        {field.name: told[field.name] for field in fields(each) if field.name in told}
        for each in (Training, AutoEncoderSettings, Objective)
    )
    assert len(of_training) + len(of_settings) + len(of_objective) == len(told), variant
    training = replace(settings.training, **of_training)
    return replace(settings, training=training, **of_settings), replace(objective, **of_objective)


def run(held: Held, settings: AutoEncoderSettings, objective: Objective) -> list[dict[str, Any]]:
    """One training, scored as it goes on."""
    training, side, channels = settings.training, held.learnt.shape[-1], held.learnt.shape[1]
    scale = AutoEncoderScale(settings, objective, side, channels)
    samples = scale.samples(held.learnt)
    state = scale.start(samples)
    curve: list[dict[str, Any]] = []
    started, scoring = time.process_time(), 0.0

    def score(state: TrainingState) -> None:
        nonlocal scoring
        seen = state.step * training.batch_size / BATCH
        if seen not in POINTS and state.step != len(state.history):
            return
        seconds = time.process_time() - started - scoring
        losses = state.history[state.step // 2 : state.step, :2].mean(dim=0)
        told = {
            "steps": state.step,
            "images": state.step * training.batch_size,
            "cpu_seconds": round(seconds, 1),
            "mean l_h": round(float(losses[0]), 4) if state.step else None,
            "mean l_r": round(float(losses[1]), 4) if state.step else None,
        }
        curve.append({**told, **figures(scale, samples, held)})
        scoring = time.process_time() - started - seconds

    score(state)
    fabric = make_fabric("cpu", "32-true")
    train(state, samples, objective, settings.similarity, training, fabric, score)
    return curve


@torch.no_grad()
def figures(scale: AutoEncoderScale, samples: FeatureSamples, held: Held) -> dict[str, float]:
    """AUROC of the score at each share of l_h, and of what images show without any network."""
    learnt, seen = (
        samples.batch(torch.arange(min(len(samples), LEARNT))),
        scale.samples(held.scored),
    )
    latents = [scale.autoencoder(part, decode=False).latent
               for part in learnt.encoder_input.split(AT_ONCE)]  # fmt: skip
    centre = torch.cat(latents).mean(dim=0)
    errors, latents, details = [], [], []
    for part in torch.arange(len(seen)).split(AT_ONCE):
        batch = seen.batch(part)
        decoded = scale.autoencoder(batch.encoder_input)
        assert decoded.reconstruction is not None
        errors.append(
            reconstruction_error(
                batch.image, decoded.reconstruction, scale.settings.similarity
            ).clamp(max=1)
        )
        latents.append(decoded.latent)
        details.append(detail(batch.image))
    error, latent, shown = torch.cat(errors), torch.cat(latents), torch.cat(details)
    variance = squared_distance(latent[:SCALING], centre).median()
    terms = [error, anomaly(latent, centre, variance)]
    scaled = [RobustScaler.fit(term[:SCALING])(term) for term in terms]
    found = {
        f"share {share:g}": held.auroc(scale_score(scaled, [1 - share, share])) for share in SHARES
    }
    of_learnt = detail(learnt.image)
    found["detail alone"] = held.auroc(mahalanobis(shown, of_learnt))
    both = torch.cat([error.log()[:, None], shown], dim=1)
    found["l_r and detail"] = held.auroc(mahalanobis(both, both[:SCALING]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", required=True)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=250, help="of 64 images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, required=True, help="folder of runs that are done")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    arrays = np.load(options.data)
    pixels, labels = as_pixels(arrays["x_train"]), arrays["y_train"].ravel()
    asked = [(variant, number) for variant in options.variants for number in options.classes]
    runs = []
    options.kept.mkdir(parents=True, exist_ok=True)
    for variant, number in TerminalProgress().track(asked, len(asked), "training"):
        name = f"{options.data.stem}-{variant}-{number}-{options.steps}-{options.seed}.json"
        file = options.kept / name.replace(" ", "-")
        if not file.exists():
            held = Held(pixels, labels, number, options.seed)
            curve = run(held, *changed(variant, options.steps, options.seed))
            write_text(file, json.dumps(curve))
        runs += [
            {"variant": variant, "class": number, **each} for each in json.loads(file.read_text())
        ]
    told = {
        "what": f"{options.data.stem}: IGD from scratch as training goes on, held-out training "
        f"images of classes {', '.join(map(str, options.classes))} against those of the others",
        "command": f"python benchmarks/from_scratch.py --data {options.data.name} --classes "
        f"{' '.join(map(str, options.classes))} --variants "
        f"{' '.join(map(repr, options.variants))} --steps {options.steps} --seed {options.seed}",
        **conditions("fast", options.seed),
        "time_to_quality": runs,
    }
    if options.out:
        write_text(options.out, json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
