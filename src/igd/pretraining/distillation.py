"""Distillation: a student encoder learns to give the vector that a frozen teacher gives, |s(x) -
t(x)|^2, a feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.backbones.architectures import KINDS, Backbone, prepared
from igd.backbones.features import FrozenBackbone
from igd.data.row_buffer import RowBuffer
from igd.data.store import Pixels, take
from igd.files.checkpoint_file import Checkpoint, stopped
from igd.pretraining.encoder_training import Precision, Watch, fit_encoder, shown_to, start_encoder
from igd.pretraining.encoders import frozen
from igd.progress import Progress
from igd.rng import generator, spread

AT_ONCE = 64  # images the teacher encodes before progress is shown


@dataclass(frozen=True)
class Distillation:
    """How to distil; the defaults are the paper's."""

    steps: int = 50_000
    batch_size: int = 64
    learning_rate: float = 1e-4
    weight_decay: float = 1e-5
    narrow: bool = False  # a student of a quarter of ResNet18's width, for a sixteenth of the work
    precision: Precision = "32-true"
    seed: int = 0


# For minutes on a CPU, with the rate falling to 0.
FAST = Distillation(steps=1500, learning_rate=1e-3, narrow=True)


@dataclass(frozen=True)
class Distilled:
    """A student, and how its vectors came closer to the teacher's."""

    encoder: Backbone
    # (steps,), of a feature; behind a linear layer, 1 is no better than the teacher's mean.
    losses: Tensor
    # Mean cosine of the student's and the teacher's vectors of the training images.
    agreement: float


def distil(
    teacher: FrozenBackbone,
    pixels: Pixels,
    settings: Distillation,
    progress: Progress,
    stop: Callable[[], bool] = lambda: False,
    saved: Checkpoint | None = None,
) -> Distilled:
    """Train a student on 8-bit images (n, c, h, w).

    The student is as good as the images are many-sided: of what it was never shown it gives vectors
    that mean nothing.
    """
    target = teacher_vectors(teacher, pixels, progress, stop, saved)
    origin = f"distilled from {teacher.backbone.name} in {settings.steps} steps"
    return learn_vectors(target, pixels, settings, origin, progress, stop, saved)


def learn_vectors(
    target: Tensor,
    pixels: Pixels,
    settings: Distillation,
    origin: str,
    progress: Progress,
    stop: Callable[[], bool] = lambda: False,
    saved: Checkpoint | None = None,
    watch: Watch | None = None,
) -> Distilled:
    """Train a student to give the vectors (n, features) that a teacher gave of these images.

    Where the teacher's vectors have another length than the student's, a linear layer between them
    is dropped afterwards. It starts at the teacher's mean and speaks in units of its spread: to
    learn these two would take the student a while.
    """
    shape = (pixels.shape[-2], pixels.shape[-1])
    length = target.shape[1]
    name, learner = start_encoder(
        pixels,
        settings.narrow,
        settings.seed,
        "student",
        lambda features: nn.Identity() if features == length else _zero_layer(features, length),
        settings.precision,
    )
    middle, unit = torch.zeros(length), 1.0
    if KINDS[name].pooled != length:
        middle = target.mean(dim=0)
        unit = float((target - middle).square().mean().sqrt().clamp(min=torch.finfo().tiny))
    optimizer = torch.optim.Adam(
        learner.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
    )

    def loss_of(step: int) -> Tensor:
        indices = torch.randint(
            len(pixels), (settings.batch_size,), generator=generator(settings.seed, "distil", step)
        )
        student = learner(prepared(take(pixels, indices), KINDS[name], shape))
        return F.mse_loss(student, (target[indices] - middle) / unit)

    show = shown_to(watch, name, learner)
    losses = fit_encoder(
        learner, optimizer, loss_of, settings.steps, "distilling", progress, stop, saved, show
    )
    learner.eval()
    with torch.no_grad():
        shown = spread(len(pixels), 512)
        student = torch.cat(
            [
                learner(prepared(take(pixels, part), KINDS[name], shape))
                for part in shown.split(AT_ONCE)
            ]
        )
        agreement = F.cosine_similarity(middle + unit * student, target[shown]).mean().item()
    return Distilled(frozen(name, learner[0], origin), losses, agreement)


def _zero_layer(features: int, length: int) -> nn.Linear:
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, features, length)
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def teacher_vectors(
    teacher: FrozenBackbone,
    pixels: Pixels,
    progress: Progress,
    stop: Callable[[], bool] = lambda: False,
    saved: Checkpoint | None = None,
) -> Tensor:
    """What the teacher makes of every image, computed once: (n, features)."""
    vectors = RowBuffer()
    batches = torch.arange(len(pixels)).split(AT_ONCE)
    for indices in progress.track(batches, len(pixels), "asking the teacher", len):
        if stop():
            raise stopped(saved)
        vector = teacher(take(pixels, indices)).vector
        assert vector is not None
        vectors.add(vector)
    return vectors.all
