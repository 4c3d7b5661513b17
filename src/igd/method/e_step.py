"""The E-step: mu and sigma of the latents, of all processes together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from igd.method.collective import gathered
from igd.method.gaussian import GaussianDescriptor, LatentMoments, keep_off_zero
from igd.method.objective import Objective

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@torch.no_grad()
def e_step(
    latents: Iterable[Tensor],
    objective: Objective,
    previous: GaussianDescriptor | None,
    fabric: Fabric,
) -> GaussianDescriptor:
    """omega = (mu_x, sigma_x) of the training latents: eq. 3. DSVDD keeps its first centre."""
    moments = LatentMoments()
    for latent in latents:
        moments.update(latent)
    whole = LatentMoments()
    for process in gathered(moments.packed(), fabric):
        whole.merge(LatentMoments.unpacked(process))

    mean = keep_off_zero(whole.mean, objective.mean_floor).float()
    if objective.fixed_centre and previous is not None:
        mean = previous.mean
    return GaussianDescriptor(mean, whole.variance_around(mean.double()).float())


def online_e_step(
    latent: Tensor, rate: float, objective: Objective, previous: GaussianDescriptor, fabric: Fabric
) -> GaussianDescriptor:
    """Online EM (Cappe and Moulines): the descriptor follows the encoder between two E-steps.

    An encoder trained from scratch can move its latents by more than sigma within an epoch. By the
    old mu and sigma, all of them are then anomalous, l_h is 1 everywhere, and its gradient is gone.
    """
    batch = e_step([latent.detach()], objective, previous, fabric)
    between = rate * (1 - rate) * (batch.mean - previous.mean).square().sum()
    mean = torch.lerp(previous.mean, batch.mean, rate)
    variance = torch.lerp(previous.variance, batch.variance, rate) + between
    return GaussianDescriptor(mean, variance)
