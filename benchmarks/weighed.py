"""IGD on frozen features whose E-step counts each image by its normality, for contaminated images.

igd benchmark run cifar10:ablation --classes 0 3 5 8 --seeds 0 1 --scales global \\
    --feature-cache DIR --methods igd \\
    benchmarks/weighed.py:Weighed benchmarks/weighed.py:WeighedStart

The weight is the paper's own p(y=0|omega, x), by the descriptor before; the M-step has it as it is,
since the gradient of l_h = 1 - p is proportional to p. `Weighed` weighs every E-step of the
training, whole or online; `WeighedStart` also whitens by a covariance so weighed, where most of
what contamination costs is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar
from unittest.mock import patch

import torch
from torch import Tensor, nn

from igd.benchmark.methods import Trained
from igd.data.sample import Sample
from igd.method.e_step import e_step
from igd.method.gaussian import GaussianDescriptor, normality
from igd.method.objective import Objective
from igd.scales.whitening import principal, shrinkage_of

E_STEPS = 3  # of the covariance that whitens


def weighed_descriptor(latent: Tensor, previous: GaussianDescriptor) -> GaussianDescriptor:
    """mu and sigma of latents that count by their normality under the descriptor before."""
    weight = normality(latent, previous.mean, previous.variance).double()
    weight /= weight.sum()
    mean = weight @ latent.double()
    variance = weight @ (latent - mean).square().sum(dim=1)
    return GaussianDescriptor(mean.float(), variance.float())


def weighed_e_step(
    latents: Iterable[Tensor],
    objective: Objective,
    previous: GaussianDescriptor | None,
    fabric: Any,
) -> GaussianDescriptor:
    every = torch.cat([each.detach() for each in latents])
    before = previous or e_step([every], objective, None, fabric)
    return weighed_descriptor(every, before)


def weighed_online_e_step(
    latent: Tensor,
    rate: float,
    objective: Objective,  # noqa: ARG001
    previous: GaussianDescriptor,
    fabric: Any,  # noqa: ARG001
) -> GaussianDescriptor:
    batch = weighed_descriptor(latent.detach(), previous)
    between = rate * (1 - rate) * (batch.mean - previous.mean).square().sum()
    mean = torch.lerp(previous.mean, batch.mean, rate)
    return GaussianDescriptor(mean, torch.lerp(previous.variance, batch.variance, rate) + between)


@torch.no_grad()
def start_weighed(linear: nn.Linear, features: Tensor) -> None:
    """`start_whitened` with a mean and a covariance of vectors that count by their normality."""
    vector = features.double()
    shrinkage, weight = shrinkage_of(features.float()), torch.ones(len(vector)).double()
    for _ in range(1 + E_STEPS):
        share = weight / weight.sum()
        mean = share @ vector
        centred = vector - mean
        variance, direction = principal(
            centred * (share * len(share)).sqrt()[:, None], linear.out_features
        )
        level = share @ centred.square().mean(dim=1)
        rows = direction * ((1 - shrinkage) * variance + shrinkage * level).rsqrt()
        distance = (centred @ rows).square().sum(dim=1)
        weight = torch.exp(-distance / (share @ distance))
    linear.weight.copy_(rows.T)
    if linear.bias is not None:
        linear.bias.copy_(-linear.weight.double() @ mean)


class Weighed(Trained):
    changed: ClassVar[dict[str, Callable[..., Any]]] = {
        "igd.method.em.e_step": weighed_e_step,
        "igd.method.m_step.online_e_step": weighed_online_e_step,
    }

    def fit(self, images: Sequence[Sample]) -> None:
        with ExitStack() as stack:
            for name, replacement in self.changed.items():
                stack.enter_context(patch(name, replacement))
            super().fit(images)


class WeighedStart(Weighed):
    changed: ClassVar[dict[str, Callable[..., Any]]] = {
        **Weighed.changed,
        "igd.scales.autoencoder.start_whitened": start_weighed,
    }
