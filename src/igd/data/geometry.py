"""How an image of any size becomes the square a model reads, and how the model's map finds its
way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.errors import UserError

Fit = Literal["resize", "crop", "letterbox"]
LARGEST_SIDE = 4096  # pixels of the square
FITS: tuple[Fit, ...] = ("resize", "crop", "letterbox")
Box = tuple[int, int, int, int]  # left, upper, right, lower


@dataclass(frozen=True)
class Geometry:
    """A square of `side` pixels, and how a rectangle is fitted to it.

    resize     both sides stretched to the square
    crop       the largest centred square; what is beside it is not read
    letterbox  the whole image, shrunk, between two grey bars
    """

    side: int
    fit: Fit = "resize"

    def to_square(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels the model reads: (side, side, channels)."""
        source, target = self._boxes(image.width, image.height)
        left, upper, right, lower = target
        resized = image.resize((right - left, lower - upper), Image.Resampling.BILINEAR, box=source)
        if resized.size == (self.side, self.side):
            return np.asarray(resized)
        square = Image.new(
            image.mode, (self.side, self.side), 128 if image.mode == "L" else (128, 128, 128)
        )
        square.paste(resized, (left, upper))
        return np.asarray(square)

    def to_original(
        self, anomaly_map: NDArray[np.float32], width: int, height: int
    ) -> NDArray[np.float32]:
        """A map of the square, (side, side), as a map of the original image, (height, width); 0
        where it was cut off.
        """
        source, target = self._boxes(width, height)
        left, upper, right, lower = source
        part = Image.fromarray(np.ascontiguousarray(anomaly_map, dtype=np.float32))
        resized = part.resize((right - left, lower - upper), Image.Resampling.BILINEAR, box=target)
        if resized.size == (width, height):
            return np.asarray(resized)
        original = np.zeros((height, width), dtype=np.float32)
        original[upper:lower, left:right] = np.asarray(resized)
        return original

    def _boxes(self, width: int, height: int) -> tuple[Box, Box]:
        """The part of the image that is used, and the part of the square it fills."""
        whole, square = (0, 0, width, height), (0, 0, self.side, self.side)
        if self.fit == "crop":
            shorter = min(width, height)
            left, upper = (width - shorter) // 2, (height - shorter) // 2
            return (left, upper, left + shorter, upper + shorter), square
        if self.fit == "letterbox":
            scale = self.side / max(width, height)
            wide, high = max(1, round(width * scale)), max(1, round(height * scale))
            left, upper = (self.side - wide) // 2, (self.side - high) // 2
            return whole, (left, upper, left + wide, upper + high)
        return whole, square


def check_large_enough(name: str, size: tuple[int, int], smallest: int) -> None:
    """Refuse an image in which not even the smallest window of any scale finds its place."""
    if min(size) < smallest:
        raise UserError(
            f"{name}: {size[0]}x{size[1]} pixels are fewer than the model can read; "
            f"the shorter side must have at least {smallest}"
        )


def stack(squares: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Square pixels (side, side[, 3]) as one array (n, channels, side, side)."""
    stacked = np.stack([square if square.ndim == 3 else square[:, :, None] for square in squares])
    return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
