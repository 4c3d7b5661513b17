"""What EM training works on: its samples, and all that it changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from igd.method.gaussian import GaussianDescriptor
from igd.method.networks import AutoEncoder, Critic
from igd.method.resnet import measure_statistics
from igd.method.schedule import Training, epoch_order
from igd.ops.adam import InPlaceAdam

# Columns of the history.
RECORDED = ("classification", "reconstruction", "fooling", "critic", "alpha_error")
MEASURED_SAMPLES = 64  # enough for the statistics of the normalisation layers


class Batch(NamedTuple):
    """Training samples, as the decoder is to reproduce them and as the encoder reads them."""

    image: Tensor  # (b, c, h, w)
    encoder_input: Tensor  # the same images, or a frozen backbone's features of them (b, f)


class Samples(Protocol):
    """What training needs of a set of images."""

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor, mirrored: Tensor | None = None) -> Batch:
        """These samples, those marked in `mirrored` flipped left to right."""
        ...

    def encoder_input(self, indices: Tensor) -> Tensor:
        """`batch(indices).encoder_input`, without making the images where they are not needed."""
        ...


@dataclass
class TrainingState:
    """All that training changes: with the configuration and the images it is enough to go on."""

    autoencoder: AutoEncoder
    critic: Critic
    optimizer: torch.optim.Adam
    critic_optimizer: torch.optim.Adam
    history: Tensor  # (steps, len(RECORDED)), rows beyond `step` are NaN
    descriptor: GaussianDescriptor | None = None
    step: int = 0


def start_training(
    autoencoder: AutoEncoder, critic: Critic, samples: Samples, training: Training
) -> TrainingState:
    """A state at step 0, with the normalisation layers' statistics measured on the first samples of
    the first epoch.
    """
    first = epoch_order(training, len(samples), 0)[:MEASURED_SAMPLES]
    measure_statistics(autoencoder, samples.encoder_input(first))
    return TrainingState(
        autoencoder,
        critic,
        _adam(autoencoder, training),
        _adam(critic, training),
        torch.full((training.total_steps(len(samples)), len(RECORDED)), math.nan),
    )


def _adam(network: torch.nn.Module, training: Training) -> torch.optim.Adam:
    rate, decay = training.learning_rate, training.weight_decay
    return InPlaceAdam(network.parameters(), rate, training.betas, decay)
