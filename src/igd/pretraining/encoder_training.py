"""The training that all ways to make an encoder share: a fresh one with a head, a loss a step, a
rate that falls to 0, a checkpoint to go on from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from igd.backbones.architectures import KINDS, Backbone
from igd.cpu import require_bfloat16
from igd.data.store import Pixels, take
from igd.files.checkpoint_file import Checkpoint, learner_tensors, restore_learner, stopped
from igd.ops.filters import resize
from igd.pretraining.encoders import fresh_encoder
from igd.progress import Progress
from igd.rng import spread

PART = "encoder"  # of a checkpoint
STEEPEST = 1.0  # largest norm of a step's gradient in the encoder; heads learn unhindered
MEASURED = 64  # images for the statistics of the normalisation layers

# Sees the encoder after every step; must leave it as it was.
Watch = Callable[[int, Backbone], None]
Precision = Literal["32-true", "bf16-mixed"]


class HeadedEncoder(nn.Sequential):
    """An encoder, and a head behind it. While it learns in mixed precision, what goes through it is
    bfloat16; weights and what the optimizer knows stay in single precision.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, precision: Precision) -> None:
        super().__init__(encoder, head)
        self.rounds = precision == "bf16-mixed"

    def forward(self, image: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.rounds and self.training):
            vector: Tensor = super().forward(image)
        return vector.float()


def start_encoder(
    pixels: Pixels,
    narrow: bool,
    seed: int,
    purpose: str,
    head: Callable[[int], nn.Module],
    precision: Precision = "32-true",
) -> tuple[str, HeadedEncoder]:
    """The name of a fresh encoder for these images, and what learns: the encoder, and behind it a
    head for vectors of its length.
    """
    require_bfloat16(precision)
    some = take(pixels, spread(len(pixels), MEASURED))
    shape = (pixels.shape[-2], pixels.shape[-1])
    name, network = fresh_encoder(shape, narrow, some, seed, purpose)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return name, HeadedEncoder(network, head(KINDS[name].pooled), precision)


def drawn_images(pixels: Pixels, count: int, rng: torch.Generator) -> Tensor:
    """So many of the images, or all, in colour and in [0, 1]."""
    indices = torch.randperm(len(pixels), generator=rng)[:count]
    return take(pixels, indices).float().expand(-1, 3, -1, -1) / 255


def as_squares(image: Tensor) -> Tensor:
    """Images (b, c, h, w) as squares: a rectangle's shape would say how it is turned."""
    side = min(image.shape[-2:])
    return image if image.shape[-2] == image.shape[-1] else resize(image, (side, side), "bilinear")


def as_input(views: list[Tensor], name: str) -> Tensor:
    """Views (b, 3, h, w) in [0, 1], one after another, as an encoder of this name reads them."""
    mean, std = (
        torch.tensor(values).view(1, 3, 1, 1) for values in (KINDS[name].mean, KINDS[name].std)
    )
    return ((torch.cat(views) - mean) / std).contiguous(memory_format=torch.channels_last)


def shown_to(
    watch: Watch | None, name: str, learner: HeadedEncoder, turned: bool = False
) -> Callable[[int], None]:
    """What tells a watch each step, with the encoder as it then is."""

    def show(step: int) -> None:
        if watch:
            origin, identity = "unfinished", str(step)
            watch(
                step,
                Backbone(name, learner[0], origin, identity, turned=turned, seen_twice=turned),
            )

    return show


def fit_encoder(
    learner: HeadedEncoder,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[int], Tensor],  # of a step; what it draws depends on the step alone
    steps: int,
    doing: str,
    progress: Progress,
    stop: Callable[[], bool],
    saved: Checkpoint | None = None,
    watch: Callable[[int], None] = lambda _: None,  # is told each step that is done
) -> Tensor:
    """Train from the start, or from where a checkpoint left off; returns the losses (steps,)."""
    rate, done, losses = optimizer.param_groups[0]["lr"], 0, torch.zeros(steps)

    def take_up(begun: dict[str, Tensor]) -> None:
        nonlocal done, losses
        done, losses = int(begun["step"]), begun["losses"]
        restore_learner("learner", learner, "moments", optimizer, begun)

    def state() -> dict[str, Tensor]:
        kept = optimizer if done < steps else None  # what follows needs the encoder alone
        learnt = learner_tensors("learner", learner, "moments", kept)
        return {"step": torch.tensor(done), "losses": losses, **learnt}

    if saved:
        saved.restore(PART, take_up)
    progress.start(steps, doing, done)
    try:
        for step in range(done, steps):
            for group in optimizer.param_groups:
                group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            loss = loss_of(step)
            if not loss.isfinite():
                raise FloatingPointError(
                    f"{doing} diverged at step {step + 1}: lower the learning rate of pre-training"
                )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learner[0].parameters(), STEEPEST)
            optimizer.step()
            losses[step], done = loss.detach(), step + 1
            progress.advance(loss=losses[step].item())
            stopping = stop()
            if saved:
                saved.keep(PART, state, progress, at_once=stopping or done == steps)
            if stopping:
                raise stopped(saved)
            watch(done)
    finally:
        progress.finish()
    return losses
