"""Contrastive pre-training (SimCLR) on the normal images alone: two views of an image belong
together, all others apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.backbones.architectures import KINDS, Backbone
from igd.data.store import Pixels, take
from igd.files.checkpoint_file import Checkpoint
from igd.pretraining.augmentation import random_view, rotations
from igd.pretraining.encoder_training import fit_encoder
from igd.pretraining.encoders import fresh_encoder, frozen
from igd.progress import Progress
from igd.rng import generator

MEASURED = 64  # images for the statistics of the normalisation layers


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
    watch: Callable[[int, Backbone], None]
    | None = None,  # sees the encoder after every step; must leave it as it was
) -> Contrasted:
    """Train an encoder on 8-bit images (n, c, h, w); its projection head is dropped
    afterwards.
    """
    shape = (pixels.shape[-2], pixels.shape[-1])
    first = take(pixels, torch.arange(min(MEASURED, len(pixels))))
    name, network = fresh_encoder(shape, settings.narrow, first, settings.seed, "contrast")
    features = KINDS[name].pooled
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        head = nn.Sequential(
            nn.Linear(features, features), nn.ReLU(), nn.Linear(features, settings.projection)
        )
    mean, std = (
        torch.tensor(values).view(1, 3, 1, 1) for values in (KINDS[name].mean, KINDS[name].std)
    )
    total, learner = settings.total_steps(len(pixels)), nn.Sequential(network, head)
    optimizer = torch.optim.SGD(
        learner.parameters(),
        settings.learning_rate,
        settings.momentum,
        weight_decay=settings.weight_decay,
    )

    def loss_of(step: int) -> Tensor:
        rng = generator(settings.seed, "contrast", step)
        indices = torch.randperm(len(pixels), generator=rng)[: settings.batch_size]
        image = take(pixels, indices).float().expand(-1, 3, -1, -1) / 255
        views = [random_view(image, rng), random_view(image, rng)]
        if settings.rotated:
            views += rotations(random_view(image, rng))
        batch = ((torch.cat(views) - mean) / std).contiguous(memory_format=torch.channels_last)
        one, other, further = learner(batch).tensor_split((len(image), 2 * len(image)))
        return nt_xent(one, other, settings.temperature, further if len(further) else None)

    def show(step: int) -> None:
        if watch:
            watch(step, Backbone(name, network, "unfinished", str(step)))

    losses = fit_encoder(
        learner, optimizer, loss_of, total, "learning by contrast", progress, stop, saved, show
    )
    return Contrasted(
        frozen(
            name, network, f"learnt by contrast in {total} steps of {settings.batch_size} images"
        ),
        losses,
    )
