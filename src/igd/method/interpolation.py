"""Adversarial interpolation: images decoded between two latents should look as real as any other
(eqs. 9 to 11).
"""

from __future__ import annotations

import torch
from torch import Tensor


def draw_alpha(count: int, generator: torch.Generator) -> Tensor:
    """One latent interpolation coefficient a sample, alpha ~ U(0, 0.5)."""
    return torch.rand(count, generator=generator) / 2


def draw_zeta(count: int, generator: torch.Generator) -> Tensor:
    """One image interpolation coefficient a sample, zeta ~ U(0, 1)."""
    return torch.rand(count, generator=generator)


def interpolate_latents(latent: Tensor, alpha: Tensor, neighbour: Tensor | None = None) -> Tensor:
    """alpha z_1 + (1 - alpha) z_2, before eq. 10: alpha is the share of z_1, and z_2 its neighbour
    in the batch.
    """
    weight = _per_sample(alpha, latent)
    neighbour = latent.roll(1, dims=0) if neighbour is None else neighbour
    return weight * latent + (1 - weight) * neighbour


def interpolate_images(image: Tensor, reconstruction: Tensor, zeta: Tensor) -> Tensor:
    """x_zeta = zeta x + (1 - zeta) x_hat, after eq. 10: an image blended with its own
    reconstruction.
    """
    weight = _per_sample(zeta, image)
    return weight * image + (1 - weight) * reconstruction


def critic_loss(predicted_alpha: Tensor, alpha: Tensor, predicted_zeta: Tensor) -> Tensor:
    """l_d = |d(x_alpha) - alpha|^2 + |d(x_zeta)|^2 of each sample: eq. 10, (b,) -> (b,)."""
    if predicted_alpha.shape != alpha.shape:  # (b,) - (b, 1) would silently be a (b, b) matrix
        raise ValueError(
            f"critic output {tuple(predicted_alpha.shape)} and alpha {tuple(alpha.shape)} differ "
            f"in shape"
        )
    return (predicted_alpha - alpha).square() + predicted_zeta.square()


def fooling_loss(predicted_alpha: Tensor) -> Tensor:
    """|d(x_alpha)|^2 of each sample, by which the auto-encoder makes interpolations look real: eq.
    11's second term.
    """
    return predicted_alpha.square()


def _per_sample(coefficient: Tensor, like: Tensor) -> Tensor:
    return coefficient.to(like).reshape(-1, *[1] * (like.dim() - 1))
