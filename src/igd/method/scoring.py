"""How losses become scores and maps: eqs. 13 to 16. Eq. 17, the map of one model, is in
`reconstruction`.

Decided here, where the paper adds: every sum is a mean, so that what is made of terms in [0, 1]
lies in [0, 1] too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def image_score(scores: Sequence[Tensor]) -> Tensor:
    """s(x) = s^G(x) + s^L(x): eq. 13, over as many scales as there are, (b,) each -> (b,)."""
    return weighted_mean(scores, [1.0] * len(scores))


def scale_score(terms: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """s^G(x) = l_r + l_h of a whole image: eq. 14, with the weights that the authors' code gives
    the two.
    """
    return weighted_mean(terms, weights)


def worst_patch(terms: Sequence[Tensor], weights: Sequence[float]) -> tuple[Tensor, Tensor]:
    """s^L(x) = max over patches of l_r + l_h: eq. 15, (b, patches) each -> the score (b,) and the
    patch that has it.
    """
    worst = scale_score(terms, weights).max(dim=1)
    return worst.values, worst.indices


def localisation_map(maps: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """l(x) = l_r^G + l_r^L at each pixel: eq. 16, over as many scales as there are, (b, h, w) each
    -> (b, h, w). In the paper all weights are 1.
    """
    return weighted_mean(maps, weights)


def weighted_mean(terms: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    weighted = [term * weight for term, weight in zip(terms, weights, strict=True)]
    return torch.stack(weighted).sum(dim=0) / sum(weights)
