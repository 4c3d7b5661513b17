"""How long and how to train: the numbers, the order of the samples, the learning rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from igd.rng import generator


@dataclass(frozen=True)
class Training:
    """How long and how to train; the defaults are the paper's."""

    epochs: int = 256
    # Length of the training whatever the number of samples; None: `epochs` passes.
    steps: int | None = None
    epoch_size: int | None = None  # samples in an epoch, drawn anew for each; None: all of them
    batch_size: int = 64
    learning_rate: float = 1e-4
    weight_decay: float = 1e-6
    betas: tuple[float, float] = (0.9, 0.999)  # of Adam
    schedule: Literal["constant", "polynomial", "cosine"] = "constant"  # of the learning rate
    e_step_every: int = 1  # epochs
    # Weight of each batch in mu and sigma between E-steps; None: they stay fixed.
    online_rate: float | None = None
    # Most that l_h may pull on the latents at the end, in units of the constraints' pull. The limit
    # grows from 0, so that the decoder learns to reconstruct before the latents contract. None: no
    # limit.
    balance: float | None = None
    clip: float | None = (
        # Largest norm of a step's gradient: MS-SSIM's is steep where two images have nothing in
        # common.
        None
    )
    flip: bool = False  # mirror each sample with probability 1/2
    seed: int = 0

    def samples_in_epoch(self, available: int) -> int:
        return min(self.epoch_size or available, available)

    def steps_in_epoch(self, available: int) -> int:
        return math.ceil(self.samples_in_epoch(available) / self.batch_size)

    def total_steps(self, available: int) -> int:
        return self.epochs * self.steps_in_epoch(available) if self.steps is None else self.steps


def epoch_order(training: Training, available: int, epoch: int) -> Tensor:
    """Which samples an epoch has, in which order; no sample twice."""
    count, rng = training.samples_in_epoch(available), generator(training.seed, "epoch", epoch)
    if 4 * count > available:
        return torch.randperm(available, generator=rng)[:count]
    # A few hundred of millions of patches: drawing some twice and dropping them beats shuffling
    # all.
    drawn: Tensor = torch.randint(available, (2 * count,), generator=rng).unique()
    return drawn[torch.randperm(len(drawn), generator=rng)[:count]]


def last_order(training: Training, available: int) -> Tensor:
    """The samples of the last E-step, which scores rest on: all, or eight epochs' worth where an
    epoch is a sample itself.
    """
    size = None if training.epoch_size is None else 8 * training.epoch_size
    return epoch_order(replace(training, epoch_size=size), available, -1)


def learning_rate_factor(training: Training, progress: float) -> float:
    """Share of the learning rate in use when `progress` (0 to 1) of the training is done."""
    if training.schedule == "polynomial":
        return float((1 - progress) ** 0.9)
    if training.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress))
    return 1.0
