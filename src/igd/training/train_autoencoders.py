"""Training of the paper's models, from their checkpoints where there are any."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

from torch import Tensor

from igd.data.store import Pixels
from igd.errors import TrainingWarning
from igd.files.checkpoint_file import stopped
from igd.method.em import train
from igd.method.training_state import TrainingState
from igd.rng import spread
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.base import Scale
from igd.scales.samples import FeatureSamples
from igd.training.checkpoint import Controls, restore_state, state_tensors
from igd.training.diagnostics import check_decoder, check_training, snapshot
from igd.training.distributed import any_of, make_fabric
from igd.training.extract import MIRRORED
from igd.training.parameters import Parameters

if TYPE_CHECKING:
    from lightning_fabric import Fabric

CHECKED = 32  # training samples on which the decoder is checked


def train_autoencoders(
    scales: list[Scale],
    pixels: Pixels,
    features: dict[str, Tensor],
    parameters: Parameters,
    controls: Controls,
) -> list[str]:
    """Train every scale that can be; what went wrong without crashing is a `TrainingWarning`, and
    is returned.
    """
    said = []
    for scale in scales:
        if isinstance(scale, AutoEncoderScale):
            name = scale.settings.name
            samples = scale.samples(pixels, features.get(name), features.get(f"{name}{MIRRORED}"))
            fabric = controls.fabric or make_fabric(parameters.device, parameters.precision)
            for message in train_autoencoder(scale, samples, fabric, controls):
                said.append(f"{name} model: {message}")
                warnings.warn(said[-1], TrainingWarning, stacklevel=2)
    return said


def train_autoencoder(
    scale: AutoEncoderScale, samples: FeatureSamples, fabric: Fabric, controls: Controls
) -> list[str]:
    """Train one scale to the end; returns warnings."""
    settings, (progress, stop, saved, _) = scale.settings, controls
    state = scale.start(samples)
    before = snapshot(state)
    if saved:
        saved.restore(settings.name, partial(restore_state, state))

    def after_step(state: TrainingState) -> None:
        last = state.history[state.step - 1]
        progress.advance(rec=last[1].item(), gauss=last[0].item(), critic=last[3].item())
        stopping = any_of(fabric, stop())
        if saved:
            done = state.step == len(state.history)
            saved.keep(
                settings.name, partial(state_tensors, state), progress, at_once=done or stopping
            )
        if stopping:
            raise stopped(saved)

    progress.start(len(state.history), f"training {settings.name} model", state.step)
    try:
        train(
            state,
            samples,
            scale.objective,
            settings.similarity,
            settings.training,
            fabric,
            after_step,
        )
    finally:
        progress.finish()
    scale.finish(state)
    scale.describe(samples, progress)
    limited = settings.training.balance is not None
    return check_training(state, before, scale.objective, limited) + _check_decoder(scale, samples)


def _check_decoder(scale: AutoEncoderScale, samples: FeatureSamples) -> list[str]:
    if scale.objective.reconstruction is None or len(samples) < 2:
        return []
    checked = samples.batch(spread(len(samples), CHECKED))
    return check_decoder(scale.autoencoder, checked, scale.settings.similarity)
