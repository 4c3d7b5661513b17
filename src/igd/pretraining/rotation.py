"""Learning to tell how an image is turned, from the normal images alone (Gidaris et al., 2018; for
one class, Golan and El-Yaniv, 2018).

To say which way up an image is, an encoder has to know what it shows. Of images that show something
else, it knows less, and their vectors lie elsewhere.
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
from igd.pretraining.augmentation import random_crop
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
class Rotation:
    """How to learn turns; the paper does not, so the defaults are our own."""

    steps: int = 25_600
    # Images, of which each is seen in all four turns. In small batches and large steps, as far as
    # held-out images of three classes tell.
    batch_size: int = 16
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    smallest: float = 0.5  # share of an image that is seen; its colours stay as they are
    narrow: bool = False  # an encoder of a quarter of ResNet18's width, for a sixteenth of the work
    precision: Precision = "32-true"
    seed: int = 0


FAST = Rotation(steps=6400, narrow=True)  # for minutes on a CPU


def fast(side: int) -> Rotation:
    """For images of this side: large ones, whose steps take twenty times as long, get fewer."""
    return FAST if side <= SMALL_LIMIT else replace(FAST, steps=-(-FAST.steps // 8))


@dataclass(frozen=True)
class Rotated:
    """An encoder that learnt turns, and how its loss fell."""

    encoder: Backbone
    losses: Tensor  # (steps,); whoever guesses has the logarithm of 4


def learn_rotation(
    pixels: Pixels,
    settings: Rotation,
    progress: Progress,
    stop: Callable[[], bool] = lambda: False,
    saved: Checkpoint | None = None,
    watch: Watch | None = None,
) -> Rotated:
    """Train an encoder on 8-bit images (n, c, h, w); its classifier is dropped afterwards. As it
    has seen all turns, mirrored images and parts of images, its vector is of some of each.
    """
    name, learner = start_encoder(
        pixels,
        settings.narrow,
        settings.seed,
        "rotation",
        lambda features: nn.Linear(features, TURNS),
        settings.precision,
    )
    optimizer = torch.optim.SGD(
        learner.parameters(),
        settings.learning_rate,
        settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=True,
    )

    def loss_of(step: int) -> Tensor:
        rng = generator(settings.seed, "rotation", step)
        image = as_squares(drawn_images(pixels, settings.batch_size, rng))
        view = random_crop(image, rng, settings.smallest)
        batch = as_input([view, *rotations(view)], name)
        return F.cross_entropy(learner(batch), torch.arange(TURNS).repeat_interleave(len(view)))

    losses = fit_encoder(
        learner,
        optimizer,
        loss_of,
        settings.steps,
        "learning turns",
        progress,
        stop,
        saved,
        shown_to(watch, name, learner, turned=True),
    )
    seen = min(settings.batch_size, len(pixels))
    origin = f"learnt turns in {settings.steps} steps of {seen} images"
    return Rotated(frozen(name, learner[0], origin, turned=True), losses)
