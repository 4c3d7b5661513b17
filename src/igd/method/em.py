"""EM training: the E-step estimates mu and sigma, the M-step trains auto-encoder and critic with
them held fixed.

Every random choice is a function of the seed and of the step it is made in, so a run that stops
after any step and goes on from its `TrainingState` ends where an uninterrupted one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from igd.method.balance import Limit
from igd.method.collective import neighbours, part, summed
from igd.method.e_step import e_step, online_e_step
from igd.method.gaussian import GaussianDescriptor
from igd.method.interpolation import critic_loss, draw_alpha, draw_zeta, interpolate_images
from igd.method.networks import AutoEncoder, Critic, Decoded
from igd.method.objective import AutoEncoderLoss, Objective, autoencoder_loss
from igd.method.resnet import measure_statistics
from igd.method.schedule import Training, epoch_order, last_order, learning_rate_factor
from igd.method.similarity import Similarity
from igd.rng import generator

if TYPE_CHECKING:
    from lightning_fabric import Fabric

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
    weights, rate, decay = network.parameters(), training.learning_rate, training.weight_decay
    # One pass over each tensor.
    return torch.optim.Adam(weights, rate, training.betas, weight_decay=decay, fused=True)


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


class Learners:
    """The networks of a state and their optimizers on the device they train on."""

    def __init__(
        self, state: TrainingState, setting: Similarity, training: Training, fabric: Fabric
    ) -> None:
        self.setting, self.training, self.fabric = setting, training, fabric
        self.autoencoder, self.optimizer = fabric.setup(state.autoencoder, state.optimizer)
        self.critic, self.critic_optimizer = fabric.setup(state.critic, state.critic_optimizer)
        _follow_to_device(state, fabric)

    @torch.no_grad()
    def encode(self, samples: Samples, order: Tensor) -> Iterator[Tensor]:
        """The latents of this process's part of the samples, batch after batch."""
        for indices in part(order, self.fabric).split(self.training.batch_size):
            yield self.autoencoder(
                self.fabric.to_device(samples.encoder_input(indices)), decode=False
            ).latent

    def apply(self, network: Any, optimizer: Any, progress: float) -> None:
        """Apply the gradients of all processes, at the learning rate of this moment."""
        if self.fabric.world_size > 1:
            gradients = [each.grad for each in network.parameters() if each.grad is not None]
            whole = summed(torch.cat([each.flatten() for each in gradients]), self.fabric)
            for gradient, total in zip(
                gradients, whole.split([each.numel() for each in gradients]), strict=True
            ):
                gradient.copy_(total.view_as(gradient))
        if self.training.clip is not None:
            self.fabric.clip_gradients(network, optimizer, max_norm=self.training.clip)
        for group in optimizer.param_groups:
            group["lr"] = self.training.learning_rate * learning_rate_factor(
                self.training, progress
            )
        optimizer.step()


class Drawn(NamedTuple):
    """This process's part of a batch and the coefficients that go with it; None where nothing is
    interpolated.
    """

    batch: Batch
    alpha: Tensor | None
    zeta: Tensor | None
    whole: int  # samples of the whole batch

    @property
    def share(self) -> float:
        """Of the whole batch: what losses and gradients of this part count."""
        return len(self.batch.image) / self.whole


def draw_batch(
    samples: Samples,
    indices: Tensor,
    goal: Objective,
    training: Training,
    step: int,
    fabric: Fabric,
) -> Drawn:
    """This process's part of a step's samples, with alpha ~ U(0, 0.5) and zeta ~ U(0, 1) for
    each, which are drawn for the whole batch: they don't depend on the number of processes.
    """
    rng, count, own = generator(training.seed, "step", step), len(indices), part(indices, fabric)
    mirrored = part(draw_zeta(count, rng) < 0.5, fabric) if training.flip else None
    batch = Batch(*map(fabric.to_device, samples.batch(own, mirrored)))
    if not goal.interpolation:
        return Drawn(batch, None, None, count)
    alpha = part(draw_alpha(count, rng), fabric).to(batch.image)
    zeta = draw_zeta(count, rng) if goal.zeta is None else torch.full((count,), goal.zeta)
    return Drawn(batch, alpha, part(zeta, fabric), count)


class Made(NamedTuple):
    """What the auto-encoder made of a batch."""

    decoded: Decoded
    predicted_alpha: Tensor | None
    loss: AutoEncoderLoss


def autoencoder_step(
    learners: Learners, state: TrainingState, goal: Objective, drawn: Drawn, progress: float
) -> Made:
    """One step of the auto-encoder down eq. 7 without the critic's own term."""
    training, fabric = learners.training, learners.fabric
    limit = None
    if training.balance is not None:
        together = partial(summed, fabric=fabric) if fabric.world_size > 1 else None
        limit = Limit(training.balance * progress, together)
    decoded = learners.autoencoder(
        drawn.batch.encoder_input,
        drawn.alpha,
        goal.reconstruction is not None,
        limit,
        partial(neighbours, count=drawn.whole, fabric=fabric),
    )
    predicted_alpha = learners.critic(decoded.interpolation) if goal.interpolation else None
    assert state.descriptor is not None
    if training.online_rate is not None:
        state.descriptor = online_e_step(
            decoded.latent, training.online_rate, goal, state.descriptor, fabric
        )
    loss = autoencoder_loss(
        goal, learners.setting, state.descriptor, drawn.batch.image, decoded, predicted_alpha
    )
    learners.optimizer.zero_grad()
    weights = list(learners.autoencoder.parameters())
    # The critic's step goes through it too.
    fabric.backward(drawn.share * loss.total, inputs=weights, retain_graph=goal.interpolation)
    learners.apply(learners.autoencoder, learners.optimizer, progress)
    return Made(decoded, predicted_alpha, loss)


def critic_step(
    learners: Learners, goal: Objective, drawn: Drawn, made: Made, progress: float
) -> tuple[Tensor, Tensor]:
    """One step of the critic down lambda_1 l_d; its loss, and the error of its alpha alone."""
    if drawn.alpha is None or drawn.zeta is None or made.predicted_alpha is None:
        return torch.zeros(()), torch.zeros(())
    assert made.decoded.reconstruction is not None
    blended = interpolate_images(
        drawn.batch.image, made.decoded.reconstruction.detach(), drawn.zeta
    )
    loss = critic_loss(made.predicted_alpha, drawn.alpha, learners.critic(blended)).mean()
    learners.critic_optimizer.zero_grad()
    weights = list(learners.critic.parameters())
    learners.fabric.backward(drawn.share * goal.critic_weight * loss, inputs=weights)
    learners.apply(learners.critic, learners.critic_optimizer, progress)
    return loss, (made.predicted_alpha.detach() - drawn.alpha).square().mean()


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


def _follow_to_device(state: TrainingState, fabric: Fabric) -> None:
    """What a checkpoint restored on the CPU, beside the networks that Fabric moved."""
    if state.descriptor is not None:
        omega = state.descriptor
        state.descriptor = GaussianDescriptor(
            fabric.to_device(omega.mean), fabric.to_device(omega.variance)
        )
    for optimizer in (state.optimizer, state.critic_optimizer):
        for parameter, moments in optimizer.state.items():
            moments.update(
                {
                    name: value.to(parameter.device)
                    for name, value in moments.items()
                    if name != "step"
                }
            )


def _check_shares(training: Training, available: int, fabric: Fabric) -> None:
    """Refuse more processes than the smallest batch has samples."""
    least = training.samples_in_epoch(available) // training.steps_in_epoch(available)
    if least < fabric.world_size:
        raise ValueError(
            f"batches of {least} samples can't be divided among {fabric.world_size} processes; "
            f"take larger batches, or fewer processes"
        )
