"""A Gaussian at each position of a feature map: what the paper's last sentence plans, and what
PaDiM (Defard et al., 2021) does.

Each position has a mean of its own. A covariance needs more examples than a mean: the positions of
a cell share one, which is shrunk towards that of its neighbours and that of the whole image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

Cell = tuple[int, int]  # rows and columns of positions in a cell
CELL: Cell = (2, 2)
LEAST_ADDED = 1e-12  # far below what any two photographs differ by


@dataclass(frozen=True)
class PositionDescriptor:
    """omega at each position: its mean, and the map that makes its cell's features white."""

    mean: Tensor  # (d, rows, columns), or of several places of tiles (places, d, rows, columns)
    # (cells, d, d), lower triangular: the inverse of the covariance's Cholesky factor.
    whitener: Tensor
    cell: Cell = CELL

    def at(self, places: Tensor | None) -> PositionDescriptor:
        """The descriptor of tiles at these places, (b,): their means differ."""
        return self if places is None else replace(self, mean=self.mean[places])

    def packed(self) -> dict[str, Tensor]:
        """For the model file: of the whiteners, the triangles alone."""
        row, column = _triangle(self.whitener.shape[-1])
        return {"mean": self.mean.contiguous(), "whitener": self.whitener[:, row, column]}


class PositionMoments:
    """Mean at each position and scatter in each cell, streamed: the E-step, eq. 3, with a
    covariance.

    Accumulated in float64 by pairwise merging (Chan et al.), so that memory does not grow with the
    number of images.
    """

    def __init__(self, cell: Cell = CELL) -> None:
        self.cell, self.count = cell, 0
        self.mean = torch.zeros((), dtype=torch.float64)  # (d, rows, columns)
        self.scatter = torch.zeros((), dtype=torch.float64)  # (cells, d, d)

    @classmethod
    def behind(
        cls,
        descriptor: PositionDescriptor,
        count: int,
        neighbour_shrinkage: float,
        global_shrinkage: float,
        ridge: float,
    ) -> PositionMoments:
        """The moments of `count` images that `describe` made a descriptor of, as exactly as its
        numbers tell: what was shrunk is a mixture of all cells that can be solved for.
        """
        moments = cls(descriptor.cell)
        _, rows, columns = descriptor.mean.shape
        size = descriptor.whitener.shape[-1]
        identity = torch.eye(size, dtype=torch.float64)
        factor = torch.linalg.solve_triangular(
            descriptor.whitener.double(), identity.expand_as(descriptor.whitener), upper=False
        )
        high, wide = moments.cell
        shares = _shares(rows // high, columns // wide, neighbour_shrinkage, global_shrinkage)
        ridged = torch.linalg.solve(shares, (factor @ factor.mT).flatten(1)).view_as(factor)
        # Of the ridge, which was added in units of the mean variance without it.
        variance = ridged.diagonal(dim1=1, dim2=2).mean() / (1 + ridge)
        moments.count, moments.mean = count, descriptor.mean.double()
        moments.scatter = (ridged - ridge * variance * identity) * (count * high * wide)
        return moments

    def update(self, features: Tensor) -> None:
        """Take in the features of a batch, (b, d, rows, columns)."""
        own, total = len(features), self.count + len(features)
        mean = features.mean(dim=0, dtype=torch.float64)
        # In double precision too: where a few images are taken out again that held most of the
        # scatter, what is left would be its rounding.
        residual = in_cells(features - mean, self.cell)
        shift = mean - self.mean
        between = in_cells((shift * (self.count * own / total) ** 0.5)[None], self.cell)
        self.scatter = self.scatter + residual.mT @ residual + between.mT @ between
        self.mean = self.mean + shift * (own / total)
        self.count = total

    def without(self, some: PositionMoments) -> PositionMoments:
        """The moments of the images that are left when some of them are taken out again."""
        left = PositionMoments(self.cell)
        left.count = self.count - some.count
        left.mean = (self.count * self.mean - some.count * some.mean) / left.count
        shift = (some.mean - left.mean) * (left.count * some.count / self.count) ** 0.5
        between = in_cells(shift[None], self.cell)
        left.scatter = self.scatter - some.scatter - between.mT @ between
        return left

    def describe(
        self,
        neighbour_shrinkage: float,
        global_shrinkage: float,
        ridge: float,
        least: float = 0.0,
        inside: Tensor | None = None,
    ) -> PositionDescriptor:
        """The descriptor: each cell's covariance, of which a share is its neighbours' and a share
        the whole image's.

        To its diagonal `ridge` is added, in units of the mean variance of a feature, and `least`,
        as it is; together no less than gives copies of one image a spread. With `inside`, the
        numbers of cells, the others have the mean covariance of these: what they would say of the
        whole image is about nothing.
        """
        high, wide = self.cell
        rows, columns = self.mean.shape[1] // high, self.mean.shape[2] // wide
        covariance = self.scatter / (self.count * high * wide)
        if inside is not None:
            usual = covariance[inside].mean(dim=0, keepdim=True).repeat(len(covariance), 1, 1)
            covariance = usual.index_copy(0, inside, covariance[inside])
        grid = covariance.view(rows, columns, -1).permute(2, 0, 1)[:, None]
        around = (
            F.avg_pool2d(grid, 3, 1, 1, count_include_pad=False)[:, 0]
            .permute(1, 2, 0)
            .reshape(covariance.shape)
        )
        everywhere = covariance.mean(dim=0, keepdim=True)
        added = (ridge * everywhere.diagonal(dim1=1, dim2=2).mean() + least).clamp(min=LEAST_ADDED)
        # In place: these are the largest matrices of a training.
        mixed = covariance.mul_(1 - neighbour_shrinkage).add_(around.mul_(neighbour_shrinkage))
        mixed.mul_(1 - global_shrinkage).add_(global_shrinkage * everywhere)
        mixed.diagonal(dim1=1, dim2=2).add_(added)
        del grid, around
        factor = torch.linalg.cholesky(mixed, out=mixed)
        identity = torch.eye(factor.shape[-1], dtype=factor.dtype).expand_as(factor)
        whitener = torch.linalg.solve_triangular(factor, identity, upper=False)
        return PositionDescriptor(features_last(self.mean.float()), whitener.float(), self.cell)


def mahalanobis(features: Tensor, descriptor: PositionDescriptor) -> Tensor:
    """Squared distance of each position's features to its mean, a dimension: (b, d, rows, columns)
    -> (b, rows, columns).
    """
    count, _, rows, columns = features.shape
    high, wide = descriptor.cell
    white = in_cells(features - descriptor.mean, descriptor.cell) @ descriptor.whitener.mT
    distance = white.square().mean(dim=2).view(rows // high, columns // wide, count, high, wide)
    return distance.permute(2, 0, 3, 1, 4).reshape(count, rows, columns)


def excess(maps: Tensor, usual: PositionDescriptor) -> Tensor:
    """How far each pixel of maps (b, h, w) lies above what is usual at its position, in
    deviations.
    """
    above = torch.maximum(maps[:, None], usual.mean)
    return mahalanobis(above, usual).sqrt()


def in_cells(features: Tensor, cell: Cell) -> Tensor:
    """The features of each cell's positions: (b, d, rows, columns) -> (cells, b * positions, d)."""
    high, wide = cell
    count, size, rows, columns = features.shape
    split = features.view(count, size, rows // high, high, columns // wide, wide)
    return split.permute(2, 4, 0, 3, 5, 1).reshape(-1, count * high * wide, size)


def features_last(maps: Tensor) -> Tensor:
    """The same maps (..., d, rows, columns) with the features of a position side by side in memory:
    cells are cut faster.
    """
    return maps.movedim(-3, -1).contiguous().movedim(-1, -3)


def unpacked(mean: Tensor, packed: Tensor, cell: Cell) -> PositionDescriptor:
    """The reverse of `PositionDescriptor.packed`."""
    size, rows, columns = mean.shape[-3:]
    high, wide = cell
    cells, triangle = rows * columns // (high * wide), size * (size + 1) // 2
    known = mean.dtype == packed.dtype and mean.dtype in (torch.half, torch.float)
    if not known or packed.shape != (cells, triangle) or rows % high or columns % wide:
        raise ValueError("a position descriptor of the wrong shape or type")
    row, column = _triangle(size)
    whitener = torch.zeros(cells, size, size)
    whitener[:, row, column] = packed.float()
    return PositionDescriptor(features_last(mean.float()), whitener, cell)


def _shares(rows: int, columns: int, neighbour_shrinkage: float, global_shrinkage: float) -> Tensor:
    """How much of each cell's covariance is in each cell's shrunk one: (cells, cells)."""
    cells = rows * columns
    alone = torch.eye(cells, dtype=torch.float64)
    around = F.avg_pool2d(alone.view(cells, 1, rows, columns), 3, 1, 1, count_include_pad=False)
    near = (1 - neighbour_shrinkage) * alone + neighbour_shrinkage * around.view(cells, cells).T
    return (1 - global_shrinkage) * near + global_shrinkage / cells


def _triangle(size: int) -> tuple[Tensor, Tensor]:
    row, column = torch.tril_indices(size, size)
    return row, column
