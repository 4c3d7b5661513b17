"""Which pixels of what a model reads, and which positions of a feature map, count: those in the
region of interest. Without one, all do.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import torch
import torch.nn.functional as F
from scipy.ndimage import distance_transform_edt
from torch import Tensor

from igd.data.geometry import Geometry
from igd.data.roi import mostly


class RegionMask:
    """The pixels that count, and the positions of any grid over it."""

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask  # bool, (rows, columns)

    @staticmethod
    def of(geometry: Geometry) -> RegionMask | None:
        """None where all of them count."""
        counted = geometry.counted
        return None if counted is None else RegionMask(torch.from_numpy(counted))

    @cached_property
    def pixels(self) -> Tensor:
        """The numbers of the pixels that count."""
        return self.mask.flatten().nonzero().flatten()

    @lru_cache(maxsize=16)  # noqa: B019 - a model has one region and a few grids
    def positions(self, rows: int, columns: int) -> Tensor:
        """The numbers of the positions of a grid that count."""
        return _mostly_inside(F.adaptive_avg_pool2d(self.mask[None].float(), (rows, columns)))

    @lru_cache(maxsize=16)  # noqa: B019
    def patches(self, side: int, stride: int) -> Tensor:
        """The numbers of the overlapping patches that count."""
        return _mostly_inside(F.avg_pool2d(self.mask[None].float(), side, stride))

    @lru_cache(maxsize=16)  # noqa: B019
    def nearest(self, rows: int, columns: int) -> Tensor:
        """For each position of a grid, the number of the one that counts and is nearest to it."""
        outside = torch.ones(rows * columns, dtype=torch.bool)
        outside[self.positions(rows, columns)] = False
        row, column = distance_transform_edt(
            outside.view(rows, columns).numpy(), return_distances=False, return_indices=True
        )
        return torch.from_numpy(row * columns + column).flatten().long()


def counted(values: Tensor, region: RegionMask | None) -> Tensor:
    """The values at the positions that count: (..., rows, columns) -> (..., n)."""
    flat = values.flatten(-2)
    if region is None:
        return flat
    return flat.index_select(-1, region.positions(*values.shape[-2:]))


def extended(values: Tensor, region: RegionMask | None) -> Tensor:
    """The same values (..., rows, columns), beyond the edge of the region those at its edge: what
    is outside must not reach in when a map is enlarged and smoothed.
    """
    if region is None:
        return values
    rows, columns = values.shape[-2:]
    nearest = values.flatten(-2).index_select(-1, region.nearest(rows, columns))
    beyond: Tensor = nearest.unflatten(-1, (rows, columns))
    return beyond


def _mostly_inside(coverage: Tensor) -> Tensor:
    return torch.from_numpy(mostly(coverage.numpy())).flatten().nonzero().flatten()
