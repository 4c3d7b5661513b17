"""EM training: the E-step estimates mu and sigma, the M-step trains auto-encoder and critic with
them held fixed.

Every random choice is a function of the seed and of the step it is made in, so a run that stops
after any step and goes on from its `TrainingState` ends where an uninterrupted one does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from igd.method.collective import summed
from igd.method.e_step import e_step
from igd.method.m_step import Drawn, Learners, autoencoder_step, critic_step, draw_batch
from igd.method.objective import AutoEncoderLoss, Objective
from igd.method.schedule import Training, epoch_order, last_order
from igd.method.similarity import Similarity
from igd.method.training_state import Samples, TrainingState

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def train(
    state: TrainingState,
    samples: Samples,
    objective: Objective,
    setting: Similarity,
    training: Training,
    fabric: Fabric,
    after_step: Callable[[TrainingState], None] = lambda _: None,
) -> TrainingState:
    """Train from `state` to the end; `after_step` gets every state a run may stop at, and may raise
    to stop there.
    """
    learners = Learners(state, setting, training, fabric)
    _check_shares(training, len(samples), fabric)
    steps_in_epoch, total_steps = (
        training.steps_in_epoch(len(samples)),
        training.total_steps(len(samples)),
    )
    warm_up = round(objective.warm_up * total_steps)
    order = epoch_order(training, len(samples), state.step // steps_in_epoch)
    for step in range(state.step, total_steps):
        epoch, position = divmod(step, steps_in_epoch)
        if position == 0:
            order = epoch_order(training, len(samples), epoch)
        goal = objective.warming_up if step < warm_up else objective
        if step == warm_up:
            # A centre that stays is that of a trained auto-encoder's latents.
            state.descriptor = None

        # E-step: the descriptor of the latents as the encoder now makes them.
        if state.descriptor is None or (position == 0 and epoch % training.e_step_every == 0):
            state.descriptor = e_step(
                learners.encode(samples, order), goal, state.descriptor, fabric
            )

        # M-step: encode once, decode once, and let the critic read each image once.
        drawn = draw_batch(
            samples, order.tensor_split(steps_in_epoch)[position], goal, training, step, fabric
        )
        made = autoencoder_step(learners, state, goal, drawn, step / total_steps)
        against_critic, alpha_error = critic_step(learners, goal, drawn, made, step / total_steps)

        _record(learners, state, drawn, made.loss, against_critic, alpha_error)
        after_step(state)

    state.descriptor = e_step(
        learners.encode(samples, last_order(training, len(samples))),
        objective,
        state.descriptor,
        fabric,
    )
    return state


def _record(
    learners: Learners,
    state: TrainingState,
    drawn: Drawn,
    loss: AutoEncoderLoss,
    against_critic: Tensor,
    alpha_error: Tensor,
) -> None:
    terms = (loss.classification, loss.reconstruction, loss.fooling, against_critic, alpha_error)
    row = torch.stack([term.detach().float().cpu() for term in terms])
    row = summed(drawn.share * row, learners.fabric)
    if not row.isfinite().all():
        raise FloatingPointError(
            f"training diverged at step {state.step + 1}: a loss is not finite; lower the "
            f"learning rate"
        )
    state.history[state.step] = row
    state.step += 1


def _check_shares(training: Training, available: int, fabric: Fabric) -> None:
    """Refuse more processes than the smallest batch has samples."""
    least = training.samples_in_epoch(available) // training.steps_in_epoch(available)
    if least < fabric.world_size:
        raise ValueError(
            f"batches of {least} samples can't be divided among {fabric.world_size} processes; "
            f"take larger batches, or fewer processes"
        )
