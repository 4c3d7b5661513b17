"""The pixel-wise Gaussian descriptor: what the paper's last sentence plans, a Gaussian at each position of a feature map.

Each position has a mean of its own. A covariance needs more examples than a mean: the positions of a cell share one, which
borrows from its neighbours and from the whole image.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

CELL = 2  # positions along the side of a cell


@dataclass(frozen=True)
class PositionDescriptor:
    """omega at each position: its mean, and the map that makes its cell's features white."""

    mean: Tensor  # (d, rows, columns)
    whitener: Tensor  # (cells, d, d), lower triangular: the inverse of the covariance's Cholesky factor


class PositionMoments:
    """Mean at each position and scatter in each cell, streamed: the E-step, eq. 3, with a covariance.

    Accumulated in float64 by pairwise merging (Chan et al.), so that memory does not grow with the number of images.
    """

    def __init__(self) -> None:
        self.weight = torch.zeros((), dtype=torch.float64)  # (rows, columns) after the first batch
        self.mean = torch.zeros((), dtype=torch.float64)  # (d, rows, columns)
        self.scatter = torch.zeros((), dtype=torch.float64)  # (cells, d, d)

    def update(self, features: Tensor, weight: Tensor | None = None) -> None:
        """Take in the features of a batch, (b, d, rows, columns), each position weighted by (b, rows, columns)."""
        if weight is None:
            weight = torch.ones(len(features), *features.shape[2:])
        own = weight.sum(dim=0).double().clamp(min=1e-12)
        mean = (features * weight[:, None]).sum(dim=0).double() / own
        residual = in_cells((features - mean.to(features.dtype)) * weight[:, None].sqrt())
        total = self.weight + own
        shift = mean - self.mean
        between = in_cells((shift * (self.weight * own / total).sqrt())[None])
        self.scatter = self.scatter + (residual @ residual.mT).double() + (between @ between.mT).double()
        self.mean = self.mean + shift * (own / total)
        self.weight = total

    def describe(self, borrowed: float, shared: float, ridge: float) -> PositionDescriptor:
        """The descriptor: each cell's covariance, of which a share is its neighbours' and a share the whole image's.

        `ridge` is added to its diagonal, in units of the mean variance of a feature.
        """
        rows, columns = self.mean.shape[1] // CELL, self.mean.shape[2] // CELL
        examples = in_cells(self.weight[None, None]).sum(dim=(1, 2))
        covariance = self.scatter / examples.view(-1, 1, 1)
        grid = covariance.view(rows, columns, -1).permute(2, 0, 1)[:, None]
        around = F.avg_pool2d(grid, 3, 1, 1, count_include_pad=False)[:, 0].permute(1, 2, 0).reshape(covariance.shape)
        everywhere = covariance.mean(dim=0, keepdim=True)
        mixed = (1 - shared) * ((1 - borrowed) * covariance + borrowed * around) + shared * everywhere
        size = mixed.shape[-1]
        least = ridge * everywhere.diagonal(dim1=1, dim2=2).mean()
        factor = torch.linalg.cholesky(mixed + least * torch.eye(size, dtype=mixed.dtype))
        identity = torch.eye(size, dtype=mixed.dtype).expand_as(factor)
        whitener = torch.linalg.solve_triangular(factor, identity, upper=False)
        return PositionDescriptor(self.mean.float(), whitener.float())


def mahalanobis(features: Tensor, descriptor: PositionDescriptor) -> Tensor:
    """Squared distance of each position's features to its mean, a dimension: (b, d, rows, columns) -> (b, rows, columns)."""
    count, _, rows, columns = features.shape
    white = descriptor.whitener @ in_cells(features - descriptor.mean)
    distance = white.square().mean(dim=1).view(rows // CELL, columns // CELL, count, CELL, CELL)
    return distance.permute(2, 0, 3, 1, 4).reshape(count, rows, columns)


def in_cells(features: Tensor) -> Tensor:
    """The features of each cell side by side: (b, d, rows, columns) -> (cells, d, b * CELL^2)."""
    count, size, rows, columns = features.shape
    split = features.view(count, size, rows // CELL, CELL, columns // CELL, CELL)
    return split.permute(2, 4, 1, 0, 3, 5).reshape(rows * columns // CELL**2, size, count * CELL**2)
