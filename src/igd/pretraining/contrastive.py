"""Contrastive pre-training (SimCLR) on the normal images alone: two views of an image belong
together, all others apart. Where what is normal is upright, its turned images count as others (CSI;
Tack et al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.backbones.architectures import TURNS, Backbone, rotations
from igd.backbones.features import SMALL_LIMIT
from igd.data.store import Pixels
from igd.files.checkpoint_file import Checkpoint
from igd.pretraining.augmentation import random_view
from igd.pretraining.encoder_training import (
    Precision,
    Watch,
    as_input,
    as_squares,
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
    batch_size: int = 32  # images; rotated, each is seen in all four turns
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.1
    temperature: float = 0.2
    projection: int = 128  # length of the vectors that are compared
    # Each image in all four turns, as four images, which are told apart by a classifier, too: what
    # is upright becomes part of what is normal.
    rotated: bool = False
    narrow: bool = False  # an encoder of a quarter of ResNet18's width, for a sixteenth of the work
    precision: Precision = "32-true"
    seed: int = 0

    def total_steps(self, images: int) -> int:
        return self.epochs * -(-images // self.batch_size) if self.steps is None else self.steps


# For minutes on a CPU.
FAST = Contrast(steps=1500, batch_size=64, learning_rate=0.05, weight_decay=5e-4, narrow=True)
FAST_ROTATED = replace(FAST, steps=3200, batch_size=32, learning_rate=0.1, rotated=True)


def fast(side: int, rotated: bool) -> Contrast:
    """For images of this side: large ones, whose steps in all turns take seconds, get fewer."""
    if not rotated:
        return FAST
    assert FAST_ROTATED.steps is not None
    fewer = -(-FAST_ROTATED.steps // 8)
    return FAST_ROTATED if side <= SMALL_LIMIT else replace(FAST_ROTATED, steps=fewer)


@dataclass(frozen=True)
class Contrasted:
    """An encoder that learnt by contrast, and how its loss fell."""

    encoder: Backbone
    losses: Tensor  # (steps,)


class ContrastHead(nn.Module):
    """Of a vector: what is compared and, where turns are told apart, a logit for each of them."""

    def __init__(self, features: int, projection: int, rotated: bool) -> None:
        super().__init__()
        self.projection = nn.Sequential(
            nn.Linear(features, features), nn.ReLU(), nn.Linear(features, projection)
        )
        self.turn = nn.Linear(features, TURNS) if rotated else None

    def forward(self, vector: Tensor) -> Tensor:
        """(b, projection), or (b, projection + 4)."""
        projected: Tensor = self.projection(vector)
        return projected if self.turn is None else torch.cat([projected, self.turn(vector)], dim=1)


def nt_xent(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    """Normalised temperature-scaled cross entropy of two views (b, p) of the same images.

    Row i of one view is to be found among the 2b - 1 other rows by row i of the other.
    """
    rows = F.normalize(torch.cat([one, other]), dim=1)
    logits = rows @ rows.T / temperature
    logits.fill_diagonal_(-torch.inf)
    partner = torch.arange(len(rows)).roll(len(one))
    return F.cross_entropy(logits, partner)


def contrast_loss(made: Tensor, settings: Contrast) -> Tensor:
    """Of what a head makes (b, p) of two views, one after the other; of images in all turns, one
    turn after the other in each view, also the cross entropy of telling them.
    """
    one, other = made[:, : settings.projection].chunk(2)
    loss = nt_xent(one, other, settings.temperature)
    if not settings.rotated:
        return loss
    turn = torch.arange(TURNS).repeat_interleave(len(one) // TURNS).repeat(2)
    return loss + F.cross_entropy(made[:, settings.projection :], turn)


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
        lambda features: ContrastHead(features, settings.projection, settings.rotated),
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
        if settings.rotated:
            image = as_squares(image)
        views = [random_view(image, rng), random_view(image, rng)]
        if settings.rotated:
            views = [turned for view in views for turned in (view, *rotations(view))]
        return contrast_loss(learner(as_input(views, name)), settings)

    show = shown_to(watch, name, learner, settings.rotated)
    losses = fit_encoder(
        learner, optimizer, loss_of, total, "learning by contrast", progress, stop, saved, show
    )
    origin = (
        f"learnt by contrast in {total} steps of {min(settings.batch_size, len(pixels))} images"
    )
    return Contrasted(frozen(name, learner[0], origin, settings.rotated), losses)
