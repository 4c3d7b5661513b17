"""A start for the encoder's linear layer from which the paper's isotropic Gaussian is a Mahalanobis distance."""

from __future__ import annotations

import torch
from sklearn.covariance import ledoit_wolf_shrinkage
from torch import Tensor, nn

MOST = 4096  # vectors that the shrinkage is chosen on
LEAST = 0.1  # shrinkage: directions that hardly vary among normal images would otherwise decide alone


@torch.no_grad()
def start_whitened(linear: nn.Linear, features: Tensor) -> None:
    """Set a linear layer so that these vectors (n, f) come out centred and white.

    The covariance is shrunk towards a multiple of the identity by Ledoit and Wolf's rule. A layer with fewer outputs than
    inputs keeps the directions of largest variance; one with more leaves the rest at 0.
    """
    vector = features.float()
    mean = vector.double().mean(dim=0)
    centred = vector.double() - mean
    covariance = centred.T @ centred / len(vector)
    spread = torch.linspace(0, len(vector) - 1, min(MOST, len(vector))).long()
    shrinkage = max(LEAST, float(ledoit_wolf_shrinkage(vector[spread].numpy())))
    variance, direction = torch.linalg.eigh(covariance)
    shrunk = (1 - shrinkage) * variance.clamp(min=0) + shrinkage * variance.mean()
    rows = (direction * shrunk.rsqrt()).T.flip(0)[: linear.out_features]
    linear.weight.zero_()
    linear.weight[: len(rows)] = rows.float()
    if linear.bias is not None:
        linear.bias.copy_(-linear.weight.double() @ mean)
