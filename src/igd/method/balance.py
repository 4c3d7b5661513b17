"""Where two losses meet: a limit on how hard the classifier may pull on the latents."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def share_latent(latent: Tensor, limit: float | None) -> tuple[Tensor, Tensor]:
    """The same latent twice: for the decoder, and for the classifier, whose gradient is limited.

    The paper maximises the normality of the latents subject to eq. 6's constraints. Trained from
    scratch with a plain sum of losses, the classifier wins before the decoder has learnt to see,
    and every image ends at the same point. With a limit, its gradient at the latents is scaled down
    to at most `limit` times the norm of the constraints'. None: the plain sum.
    """
    if limit is None:
        return latent, latent
    for_decoder, for_classifier = _Share.apply(latent, limit)
    return for_decoder, for_classifier


class _Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, limit: float) -> tuple[Tensor, Tensor]:
        ctx.limit = limit
        return latent.view_as(latent), latent.view_as(latent)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        constraint, classifier = gradients
        allowed = (
            ctx.limit
            * constraint.norm()
            / classifier.norm().clamp(min=torch.finfo(classifier.dtype).tiny)
        )
        return constraint + classifier * allowed.clamp(max=1), None
