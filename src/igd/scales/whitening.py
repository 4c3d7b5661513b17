"""A shrunk covariance of vectors, and a start for the encoder's linear layer from which the paper's
isotropic Gaussian is a Mahalanobis distance.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from igd.rng import spread

MOST = 4096  # vectors that the shrinkage is chosen on
# Shrinkage: directions that hardly vary among normal images would otherwise decide alone.
LEAST = 0.1


@torch.no_grad()
def start_whitened(linear: nn.Linear, features: Tensor) -> None:
    """Set a linear layer so that these vectors (n, f) come out centred and white.

    The covariance is shrunk towards a multiple of the identity by Ledoit and Wolf's rule. A layer
    with fewer outputs than inputs keeps the directions of largest variance; one with more leaves
    the rest at 0.
    """
    vector = features.float()
    mean = vector.double().mean(dim=0)
    centred = vector.double() - mean
    shrinkage = shrinkage_of(vector)
    variance, direction = principal(centred, min(linear.out_features, vector.shape[1]))
    shrunk = (1 - shrinkage) * variance + shrinkage * centred.square().mean()
    rows = (direction * shrunk.rsqrt()).T
    linear.weight.zero_()
    linear.weight[: len(rows)] = rows.float()
    if linear.bias is not None:
        linear.bias.copy_(-linear.weight.double() @ mean)


def shrinkage_of(vectors: Tensor) -> float:
    """How much of the covariance of vectors (n, f) should be a multiple of the identity, by Ledoit
    and Wolf's rule.
    """
    from sklearn.covariance import (
        ledoit_wolf_shrinkage,  # slow to import, and only training needs it
    )

    return max(LEAST, float(ledoit_wolf_shrinkage(vectors[spread(len(vectors), MOST)].numpy())))


def principal(centred: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` directions (f, count) of largest variance among centred vectors (n, f), and the
    variance of each.

    Fewer vectors than features span only some directions; of the others, in which nothing varies,
    any will do.
    """
    number, features = centred.shape
    if number >= features:
        # In single precision LAPACK gives up, or gives no numbers, where features hardly ever vary.
        variance, direction = torch.linalg.eigh((centred.T @ centred).double() / number)
        variance, direction = variance.to(centred), direction.to(centred)
        return variance.flip(0)[:count].clamp(min=0), direction.flip(1)[:, :count]
    _, lengths, spanned = torch.linalg.svd(centred, full_matrices=False)
    variance = torch.cat([lengths.square() / number, centred.new_zeros(features - number)])[:count]
    together = torch.cat([spanned.T, torch.eye(features, count, dtype=centred.dtype)], dim=1)
    return variance, (spanned.T if count <= number else torch.linalg.qr(together).Q)[:, :count]
