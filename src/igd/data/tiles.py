"""A large image as overlapping tiles, each of which a model reads at its own resolution, and the
maps of tiles as one map without seams. In NumPy alone: exported models use it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.geometry import LARGEST_SIDE, Geometry
from igd.data.roi import Box
from igd.errors import UserError

OVERLAP = 1 / 16  # share of a tile's side, where the user states none
MOST_OVERLAP = 0.5

Whole = NDArray[np.uint8]  # an image as it was decoded, (height, width) or (height, width, 3)


@dataclass(frozen=True)
class Tiling:
    """Squares of `side` pixels that cover an image, spread evenly, and overlap by at least a share
    of their side.
    """

    side: int  # pixels of the original image
    overlap: float
    # Width and height of the images, where each place has a descriptor of its own; None: all tiles
    # share one, and an image may have any size.
    size: tuple[int, int] | None = None

    def boxes(self, width: int, height: int) -> list[Box]:
        """The tiles of an image, row after row."""
        side = self.side
        return [
            (left, upper, left + side, upper + side)
            for upper in self._starts(height)
            for left in self._starts(width)
        ]

    def stitched(
        self, maps: Iterable[NDArray[np.float32]], width: int, height: int
    ) -> NDArray[np.float32]:
        """Maps (side, side) of all tiles, in the order of `boxes`, as one map (height, width).

        Where tiles overlap, the weight of each falls towards its edge, where it knows least.
        """
        across, down = self._weights(width), self._weights(height)
        whole = np.zeros((height, width), dtype=np.float32)
        for number, (box, tile) in enumerate(zip(self.boxes(width, height), maps, strict=True)):
            left, upper, right, lower = box
            row, column = divmod(number, len(across))
            whole[upper:lower, left:right] += tile * (down[row][:, None] * across[column])
        return whole

    def check(self) -> None:
        """Raise `ValueError` for what no tiling can be, such as a damaged file may hold."""
        possible = (
            isinstance(self.side, int)
            and 0 < self.side <= LARGEST_SIDE
            and 0 <= self.overlap <= MOST_OVERLAP
            and (self.size is None or min(self.size) >= self.side)
        )
        if not possible:
            raise ValueError("impossible tiles")

    def _starts(self, length: int) -> list[int]:
        """Where tiles begin along an axis of this length."""
        shared = round(self.overlap * self.side)
        count = max(1, math.ceil((length - shared) / (self.side - shared)))
        return [round(n * (length - self.side) / max(1, count - 1)) for n in range(count)]

    def _weights(self, length: int) -> list[NDArray[np.float32]]:
        """The weight of each pixel of each tile along an axis; those of one pixel add up to 1."""
        starts, side = self._starts(length), self.side
        inwards = np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5
        total = np.zeros(length)
        for start in starts:
            total[start : start + side] += inwards
        return [(inwards / total[start : start + side]).astype(np.float32) for start in starts]


def tile_of(pixels: Whole, box: Box, geometry: Geometry) -> NDArray[np.uint8]:
    """A tile of an image, at the model's size."""
    left, upper, right, lower = box
    part = pixels[upper:lower, left:right]
    if part.shape[:2] == (geometry.side, geometry.side):
        return part
    return geometry.to_model(Image.fromarray(np.ascontiguousarray(part)))


def check_tile_fits(name: str, size: tuple[int, int], tiling: Tiling) -> None:
    """Refuse an image without room for a tile, or of which no descriptor knows the places."""
    if min(size) < tiling.side:
        raise UserError(
            f"{name}: {size[0]}x{size[1]} pixels have no room for a tile of {tiling.side}; the "
            f"shorter side must have as many (--tile)"
        )
    if tiling.size is not None and tuple(size) != tuple(tiling.size):
        raise UserError(
            f"{name}: has {size[0]}x{size[1]} pixels; each place of an image of "
            f"{tiling.size[0]}x{tiling.size[1]} has a descriptor of its own in this model, so "
            f"images must have that size, or train with --tile-descriptors shared"
        )
