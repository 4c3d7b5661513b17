"""The Gaussian anomaly classifier: what the E-step estimates, and what a latent's distance
means.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


def squared_distance(latent: Tensor, mean: Tensor) -> Tensor:
    """Squared distance of each latent to the centre, |z - mu|^2: (b, Z) -> (b,)."""
    return (latent - mean).square().sum(dim=1)


def normality(latent: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Probability that each latent is normal, p(y=0|omega, x) = exp(-|z - mu|^2 / sigma^2): eq. 5's
    first term.
    """
    return torch.exp(-squared_distance(latent, mean) / variance)


def anomaly(latent: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Gaussian anomaly classification loss and score, l_h = 1 - p(y=0|omega, x): eq. 8.

    Written with expm1, so that latents near the centre keep their order in float32.
    """
    return -torch.expm1(-squared_distance(latent, mean) / variance)


@dataclass(frozen=True)
class GaussianDescriptor:
    """omega = (mu, sigma): centre and spread of the normal latents, as the E-step left them."""

    mean: Tensor  # (Z,)
    variance: Tensor  # scalar, sigma^2 = E|z - mu|^2


@dataclass
class LatentMoments:
    """Mean and mean squared distance of latents, streamed: eq. 3's mu_x and sigma_x^2.

    Accumulated in float64 by pairwise merging (Chan et al.), so that the result does not depend on
    how the data was cut into batches or spread over processes.

    >>> whole = LatentMoments().update(torch.tensor([[0.0], [2.0]]))
    >>> whole.mean.item(), whole.variance.item()
    (1.0, 1.0)
    """

    count: int = 0
    mean: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    scatter: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))

    def update(self, latent: Tensor) -> LatentMoments:
        """Take in a batch of latents (b, Z)."""
        latent = latent.detach().double()
        mean = latent.mean(dim=0)
        return self.merge(LatentMoments(len(latent), mean, squared_distance(latent, mean).sum()))

    def merge(self, other: LatentMoments) -> LatentMoments:
        """Take in what another batch or process has seen."""
        total = self.count + other.count
        if total:
            shift = other.mean - self.mean
            self.scatter = (
                self.scatter
                + other.scatter
                + shift.square().sum() * (self.count * other.count / total)
            )
            self.mean = self.mean + shift * (other.count / total)
            self.count = total
        return self

    @property
    def variance(self) -> Tensor:
        """sigma^2 = E|z - mu|^2: one scalar for all dimensions."""
        return self.scatter / self.count

    def variance_around(self, centre: Tensor) -> Tensor:
        """E|z - c|^2 around a centre that is not the mean: DSVDD's, which stays where it was
        put.
        """
        return self.variance + (self.mean - centre).square().sum()

    def packed(self) -> Tensor:
        """All of it as one vector, for a collective operation between processes."""
        count = torch.tensor([float(self.count)], dtype=torch.float64, device=self.mean.device)
        return torch.cat([count, self.scatter.reshape(1), self.mean.reshape(-1)])

    @staticmethod
    def unpacked(vector: Tensor) -> LatentMoments:
        return LatentMoments(int(vector[0]), vector[2:], vector[1])


def keep_off_zero(mean: Tensor, floor: float) -> Tensor:
    """Push each coordinate of a centre at least `floor` away from 0, as DSVDD and the authors' code
    do.
    """
    sign = torch.where(mean < 0, -1.0, 1.0).to(mean)
    return torch.where(mean.abs() < floor, sign * floor, mean)
