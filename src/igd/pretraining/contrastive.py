"""Contrastive pre-training (SimCLR) on the normal images alone: two views of an image belong
together, all others apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.backbones.architectures import Backbone, rotations
from igd.data.store import Pixels
from igd.files.checkpoint_file import Checkpoint
from igd.pretraining.augmentation import random_view
from igd.pretraining.encoder_training import (
    Precision,
    Watch,
    as_input,
    drawn_images,
    fit_encoder,
    shown_to,
    start_encoder,
)
from igd.pretraining.encoders import frozen
from igd.progress import Progress
from igd.rng import generator


@dataclass(frozen=True)
class Contrast:
    """How to learn by contrast; the defaults are the paper's."""

    epochs: int = 2000
    # Length of the training whatever the number of images; None: `epochs` passes.
    steps: int | None = None
    batch_size: int = 32
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.1
    temperature: float = 0.2
    projection: int = 128  # length of the vectors that are compared
    # Turned images as further negatives: what is upright becomes part of what is normal.
    rotated: bool = False
    narrow: bool = False  # an encoder of a quarter of ResNet18's width, for a sixteenth of the work
    precision: Precision = "32-true"
    seed: int = 0

    def total_steps(self, images: int) -> int:
        return self.epochs * -(-images // self.batch_size) if self.steps is None else self.steps


# For minutes on a CPU.
FAST = Contrast(steps=1500, batch_size=64, learning_rate=0.05, weight_decay=5e-4, narrow=True)


@dataclass(frozen=True)
class Contrasted:
    """An encoder that learnt by contrast, and how its loss fell."""

    encoder: Backbone
    losses: Tensor  # (steps,)


def nt_xent(
    one: Tensor, other: Tensor, temperature: float, further: Tensor | None = None
) -> Tensor:
    """Normalised temperature-scaled cross entropy of two views (b, p) of the same images; `further`
    rows are negatives.

    Row i of one view is to be found among the 2b - 1 other rows, and among the further negatives,
    by row i of the other.
    """
    rows = F.normalize(torch.cat([one, other]), dim=1)
    others = rows if further is None else torch.cat([rows, F.normalize(further, dim=1)])
    logits = rows @ others.T / temperature
    logits[torch.arange(len(rows)), torch.arange(len(rows))] = -torch.inf
    partner = torch.arange(len(rows)).roll(len(one))
    return F.cross_entropy(logits, partner)


def contrast(
    pixels: Pixels,
    settings: Contrast,
    progress: Progress,
    stop: Callable[[], bool] = lambda: False,
    saved: Checkpoint | None = None,
    watch: Watch | None = None,
) -> Contrasted:
    """Train an encoder on 8-bit images (n, c, h, w); its projection head is dropped
    afterwards.
    """
    name, learner = start_encoder(
        pixels,
        settings.narrow,
        settings.seed,
        "contrast",
        lambda features: nn.Sequential(
            nn.Linear(features, features), nn.ReLU(), nn.Linear(features, settings.projection)
        ),
        settings.precision,
    )
    total = settings.total_steps(len(pixels))
    optimizer = torch.optim.SGD(
        learner.parameters(),
        settings.learning_rate,
        settings.momentum,
        weight_decay=settings.weight_decay,
    )

    def loss_of(step: int) -> Tensor:
        rng = generator(settings.seed, "contrast", step)
        image = drawn_images(pixels, settings.batch_size, rng)
        views = [random_view(image, rng), random_view(image, rng)]
        if settings.rotated:
            views += rotations(random_view(image, rng))
        batch = as_input(views, name)
        one, other, further = learner(batch).tensor_split((len(image), 2 * len(image)))
        return nt_xent(one, other, settings.temperature, further if len(further) else None)

    show = shown_to(watch, name, learner, settings.rotated)
    losses = fit_encoder(
        learner, optimizer, loss_of, total, "learning by contrast", progress, stop, saved, show
    )
    origin = f"learnt by contrast in {total} steps of {settings.batch_size} images"
    return Contrasted(frozen(name, learner[0], origin, settings.rotated), losses)
