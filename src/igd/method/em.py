"""EM training: the E-step estimates mu and sigma, the M-step trains auto-encoder and critic with them held fixed.

Every random choice is a function of the seed and of the step it is made in, so a run that stops after any step and goes on
from its `TrainingState` ends where an uninterrupted one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from igd.method.gaussian import GaussianDescriptor, LatentMoments, keep_off_zero, squared_distance
from igd.method.interpolation import critic_loss, draw_alpha, draw_zeta, interpolate_images
from igd.method.networks import AutoEncoder, Critic, measure_statistics
from igd.method.objective import Objective, autoencoder_loss
from igd.method.similarity import Similarity

if TYPE_CHECKING:
    from lightning_fabric import Fabric

RECORDED = ("classification", "reconstruction", "fooling", "critic", "alpha_error")  # columns of the history
MEASURED_SAMPLES = 64  # enough for the statistics of the normalisation layers


class Samples(Protocol):
    """What training needs of a set of images: how many, a batch of them as a float tensor, and what the encoder sees of it."""

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Tensor, /) -> Tensor: ...

    def seen(self, indices: Tensor, mirrored: Tensor | None = None) -> Tensor | None:
        """Features that a frozen backbone made of these images, or of those marked in `mirrored` turned over; None: the
        encoder sees the images themselves."""
        ...


@dataclass(frozen=True)
class Training:
    """How long and how to train; the defaults are the paper's."""

    epochs: int = 256
    steps: int | None = None  # length of the training whatever the number of samples; None: `epochs` passes
    epoch_size: int | None = None  # samples in an epoch, drawn anew for each; None: all of them
    batch_size: int = 64
    learning_rate: float = 1e-4
    weight_decay: float = 1e-6
    betas: tuple[float, float] = (0.9, 0.999)  # of Adam
    schedule: Literal["constant", "polynomial", "cosine"] = "constant"  # of the learning rate
    e_step_every: int = 1  # epochs
    online_rate: float | None = None  # weight of each batch in mu and sigma between E-steps; None: they stay fixed
    balance: float | None = None  # most that l_h may pull on the latents at the end, in units of the constraints' pull;
    # the limit grows from 0, so that the decoder learns to see before the latents contract. None: no limit
    clip: float | None = None  # largest norm of a step's gradient: MS-SSIM's is steep where two images have nothing in common
    flip: bool = False  # mirror each sample with probability 1/2
    seed: int = 0

    def samples_in_epoch(self, available: int) -> int:
        return min(self.epoch_size or available, available)

    def steps_in_epoch(self, available: int) -> int:
        return math.ceil(self.samples_in_epoch(available) / self.batch_size)

    def total_steps(self, available: int) -> int:
        return self.epochs * self.steps_in_epoch(available) if self.steps is None else self.steps


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


def start_training(autoencoder: AutoEncoder, critic: Critic, samples: Samples, training: Training) -> TrainingState:
    """A state at step 0, with the normalisation layers' statistics measured on the first samples of the first epoch."""
    first = epoch_order(training, len(samples), 0)[:MEASURED_SAMPLES]
    seen = samples.seen(first)
    measure_statistics(autoencoder, samples[first] if seen is None else seen)
    return TrainingState(
        autoencoder,
        critic,
        _adam(autoencoder, training),
        _adam(critic, training),
        torch.full((training.total_steps(len(samples)), len(RECORDED)), math.nan),
    )


def _adam(network: torch.nn.Module, training: Training) -> torch.optim.Adam:
    weights, rate, decay = network.parameters(), training.learning_rate, training.weight_decay
    return torch.optim.Adam(weights, rate, training.betas, weight_decay=decay, fused=True)  # one pass over each tensor


def train(
    state: TrainingState,
    samples: Samples,
    objective: Objective,
    setting: Similarity,
    training: Training,
    fabric: Fabric,
    after_step: Callable[[TrainingState], None] = lambda _: None,
) -> TrainingState:
    """Train from `state` to the end; `after_step` sees every state a run may stop at, and may raise to stop there."""
    autoencoder, optimizer = fabric.setup(state.autoencoder, state.optimizer)
    critic, critic_optimizer = fabric.setup(state.critic, state.critic_optimizer)
    _follow_to_device(state, fabric)
    weights, critic_weights = list(autoencoder.parameters()), list(critic.parameters())
    steps_in_epoch, total_steps = training.steps_in_epoch(len(samples)), training.total_steps(len(samples))
    first_step, warm_up = state.step, round(objective.warm_up * total_steps)

    def encoded(order: Tensor) -> Iterable[Tensor]:
        for indices in _share(order, fabric).split(training.batch_size):
            seen = samples.seen(indices)
            yield autoencoder(fabric.to_device(samples[indices] if seen is None else seen), decode=False).latent

    for step in range(first_step, total_steps):
        epoch, position = divmod(step, steps_in_epoch)
        goal = objective.warming_up if step < warm_up else objective
        if step == warm_up:
            state.descriptor = None  # a centre that stays is that of a trained auto-encoder's latents
        if position == 0 or step == first_step:
            order = epoch_order(training, len(samples), epoch)

        # E-step: the descriptor of the latents as the encoder now makes them.
        if state.descriptor is None or (position == 0 and epoch % training.e_step_every == 0):
            state.descriptor = e_step(encoded(order), goal, state.descriptor, fabric)

        # M-step: encode once, decode once, and let the critic look once at each image.
        chance = generator(training.seed, "step", step)
        indices = _share(order.tensor_split(steps_in_epoch)[position], fabric)
        image = fabric.to_device(samples[indices])
        mirrored = draw_zeta(len(image), chance) < 0.5 if training.flip else None
        if mirrored is not None:
            image = torch.where(mirrored.to(image.device).view(-1, 1, 1, 1), image.flip(-1), image)
        features = samples.seen(indices, mirrored)
        seen = image if features is None else fabric.to_device(features)
        alpha = draw_alpha(len(image), chance).to(image) if goal.interpolation else None
        limit = None if training.balance is None else training.balance * step / total_steps
        decoded = autoencoder(seen, alpha, goal.reconstruction is not None, limit)
        predicted_alpha = critic(decoded.interpolation) if goal.interpolation else None
        if training.online_rate is not None:
            state.descriptor = online_e_step(decoded.latent, training.online_rate, goal, state.descriptor, fabric)

        loss = autoencoder_loss(goal, setting, state.descriptor, image, decoded, predicted_alpha)
        optimizer.zero_grad()
        fabric.backward(loss.total, inputs=weights, retain_graph=goal.interpolation)
        against_critic = alpha_error = torch.zeros(())
        if alpha is not None and predicted_alpha is not None:
            zeta = draw_zeta(len(image), chance) if goal.zeta is None else torch.full((len(image),), goal.zeta)
            blended = interpolate_images(image, decoded.reconstruction.detach(), zeta)
            against_critic = critic_loss(predicted_alpha, alpha, critic(blended)).mean()
            alpha_error = (predicted_alpha.detach() - alpha).square().mean()
            critic_optimizer.zero_grad()
            fabric.backward(goal.critic_weight * against_critic, inputs=critic_weights)
            _step(critic, critic_optimizer, training, step / total_steps, fabric)
        _step(autoencoder, optimizer, training, step / total_steps, fabric)

        recorded = (loss.classification, loss.reconstruction, loss.fooling, against_critic, alpha_error)
        state.history[step] = torch.stack([term.detach().float().cpu() for term in recorded])
        if not state.history[step].isfinite().all():
            raise FloatingPointError(f"training diverged at step {step + 1}: a loss is not finite; lower the learning rate")
        state.step = step + 1
        after_step(state)

    state.descriptor = e_step(encoded(last_order(training, len(samples))), objective, state.descriptor, fabric)
    return state


@torch.no_grad()
def e_step(
    latents: Iterable[Tensor], objective: Objective, previous: GaussianDescriptor | None, fabric: Fabric
) -> GaussianDescriptor:
    """omega = (mu_x, sigma_x) of the training latents: eq. 3. DSVDD keeps its first centre and moves only its radius."""
    moments, distances = LatentMoments(), []
    soft = objective.classifier == "soft-boundary" and previous is not None
    for latent in latents:
        moments.update(latent)
        if soft and previous is not None:
            distances.append(squared_distance(latent, previous.mean))
    whole = LatentMoments()
    for process in _gathered(moments.packed()[None], fabric):
        whole.merge(LatentMoments.unpacked(process))

    mean = keep_off_zero(whole.mean, objective.mean_floor).float()
    if objective.fixed_centre and previous is not None:
        mean = previous.mean
    variance = whole.variance_around(mean.double()).float()
    radius = torch.zeros_like(variance)
    if soft:
        everyone = _gathered(torch.cat(distances)[:, None], fabric).flatten()
        radius = everyone.kthvalue(math.ceil((1 - objective.soft_boundary) * len(everyone))).values.sqrt()
    return GaussianDescriptor(mean, variance, radius)


def online_e_step(
    latent: Tensor, rate: float, objective: Objective, previous: GaussianDescriptor, fabric: Fabric
) -> GaussianDescriptor:
    """Online EM (Cappe and Moulines): the descriptor follows the encoder between two E-steps.

    An encoder trained from scratch can move its latents by more than sigma within an epoch. Judged by the old mu and
    sigma, all of them are then anomalous, l_h is 1 everywhere, and its gradient is gone.
    """
    batch = e_step([latent.detach()], objective, previous, fabric)
    between = rate * (1 - rate) * (batch.mean - previous.mean).square().sum()
    mean = torch.lerp(previous.mean, batch.mean, rate)
    variance = torch.lerp(previous.variance, batch.variance, rate) + between
    return GaussianDescriptor(mean, variance, previous.radius)


def epoch_order(training: Training, available: int, epoch: int) -> Tensor:
    """Which samples an epoch sees, in which order; no sample twice."""
    count, chance = training.samples_in_epoch(available), generator(training.seed, "epoch", epoch)
    if 4 * count > available:
        return torch.randperm(available, generator=chance)[:count]
    # A few hundred of millions of patches: drawing some twice and dropping them beats shuffling all.
    drawn: Tensor = torch.randint(available, (2 * count,), generator=chance).unique()
    return drawn[torch.randperm(len(drawn), generator=chance)[:count]]


def last_order(training: Training, available: int) -> Tensor:
    """The samples of the last E-step, which scores rest on: all, or eight epochs' worth where an epoch is a sample itself."""
    size = None if training.epoch_size is None else 8 * training.epoch_size
    return epoch_order(replace(training, epoch_size=size), available, -1)


def generator(seed: int, purpose: str, counter: int = 0) -> torch.Generator:
    """A source of chance that depends on nothing but its arguments."""
    entropy = np.random.SeedSequence([seed, *purpose.encode(), counter + 1])
    return torch.Generator().manual_seed(int(entropy.generate_state(1, np.uint64)[0]))


def learning_rate_factor(training: Training, progress: float) -> float:
    """Share of the learning rate in use when `progress` (0 to 1) of the training is done."""
    if training.schedule == "polynomial":
        return float((1 - progress) ** 0.9)
    if training.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress))
    return 1.0


def _step(network: Any, optimizer: Any, training: Training, progress: float, fabric: Fabric) -> None:
    """Apply the gradients, at the learning rate of this moment."""
    if training.clip is not None:
        fabric.clip_gradients(network, optimizer, max_norm=training.clip)
    for group in optimizer.param_groups:
        group["lr"] = training.learning_rate * learning_rate_factor(training, progress)
    optimizer.step()


def _follow_to_device(state: TrainingState, fabric: Fabric) -> None:
    """What a checkpoint restored on the CPU, beside the networks that Fabric moved."""
    if state.descriptor is not None:
        values = (state.descriptor.mean, state.descriptor.variance, state.descriptor.radius)
        state.descriptor = GaussianDescriptor(*map(fabric.to_device, values))
    for optimizer in (state.optimizer, state.critic_optimizer):
        for parameter, moments in optimizer.state.items():
            moments.update({name: value.to(parameter.device) for name, value in moments.items() if name != "step"})


def _share(indices: Tensor, fabric: Fabric) -> Tensor:
    """This process's part of the samples."""
    return indices[fabric.global_rank :: fabric.world_size]


def _gathered(rows: Tensor, fabric: Fabric) -> Tensor:
    """The rows (n, ...) of every process, one process after the other."""
    together = fabric.all_gather(rows)
    assert isinstance(together, Tensor)
    return together.reshape(-1, *rows.shape[1:])
