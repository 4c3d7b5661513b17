"""Where two losses meet: a limit on how hard the classifier may pull on the latents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Limit(NamedTuple):
    """How hard the classifier may pull, of all processes that share a batch."""

    share: float  # of the norm of the constraints' gradient
    summed: Callable[[Tensor], Tensor] | None = None  # over processes, where there are several


def share_latent(latent: Tensor, limit: Limit | None) -> tuple[Tensor, Tensor]:
    """The same latent twice: for the decoder, and for the classifier, whose gradient is limited.

    The paper maximises the normality of the latents subject to eq. 6's constraints. Trained from
    scratch with a plain sum of losses, the classifier wins before the decoder has learnt to see,
    and every image ends at the same point. With a limit, its gradient at the latents is scaled down
    to at most `limit.share` times the norm of the constraints'. None: the plain sum.
    """
    if limit is None:
        return latent, latent
    for_decoder, for_classifier = _Share.apply(latent, limit)
    return for_decoder, for_classifier


class _Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, limit: Limit) -> tuple[Tensor, Tensor]:
        ctx.limit = limit
        return latent.view_as(latent), latent.view_as(latent)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        constraint, classifier = gradients
        norms = torch.stack([constraint.norm(), classifier.norm()])
        if ctx.limit.summed is not None:
            norms = ctx.limit.summed(norms.square()).sqrt()
        least = torch.finfo(classifier.dtype).tiny
        allowed = ctx.limit.share * norms[0] / norms[1].clamp(min=least)
        return constraint + classifier * allowed.clamp(max=1), None
