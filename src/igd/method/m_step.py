"""The M-step: one batch, one step of the auto-encoder and one of the critic, mu and sigma held
fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from igd.method.balance import Limit
from igd.method.collective import neighbours, part, summed
from igd.method.e_step import online_e_step
from igd.method.gaussian import GaussianDescriptor
from igd.method.interpolation import critic_loss, draw_alpha, draw_zeta, interpolate_images
from igd.method.networks import Decoded
from igd.method.objective import AutoEncoderLoss, Objective, autoencoder_loss
from igd.method.schedule import Training, learning_rate_factor
from igd.method.similarity import Similarity
from igd.method.training_state import Batch, Samples, TrainingState
from igd.rng import generator

if TYPE_CHECKING:
    from lightning_fabric import Fabric


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
