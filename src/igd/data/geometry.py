"""How an image of any size becomes the square a model reads, and how the model's map finds its
way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.alignment import Alignment, Pose, aligned, brought_back, forgotten
from igd.data.roi import HALF, Box, MaskPixels, Roi, Size, coverage, grey, mostly, same_aspect
from igd.errors import UserError

Fit = Literal["resize", "crop", "letterbox"]
LARGEST_SIDE = 4096  # pixels of the square
FITS: tuple[Fit, ...] = ("resize", "crop", "letterbox")


@dataclass(frozen=True)
class Geometry:
    """A square of `side` pixels, and how a rectangle is fitted to it: the image, aligned if wanted,
    or its region of interest.

    resize     both sides stretched to the square
    crop       the largest centred square; what is beside it is not read
    letterbox  the whole image, shrunk, between two grey bars
    """

    side: int
    fit: Fit = "resize"
    roi: Roi | None = None
    align: Alignment | None = None

    @property
    def frame(self) -> Size | None:
        """Of images in which a place means something; None where any shape will do."""
        fixed = self.roi or self.align
        return None if fixed is None else fixed.frame

    def pose(self, image: Image.Image) -> Pose | None:
        """How far the part lies from its usual place; None where images are taken as they are."""
        return None if self.align is None else self.align.pose(image)

    def to_square(
        self, image: Image.Image, pose: Pose | None = None, forget: tuple[int, int] | None = None
    ) -> NDArray[np.uint8]:
        """The pixels the model reads of an image at a pose, (side, side, channels); without those
        that a shift would have hidden, if it is to forget them.
        """
        image = aligned(image, pose) if pose else image
        image = forgotten(image, *forget) if forget else image
        image = self.roi.cut(image, self._read(image.size)) if self.roi else image
        source, target = self._boxes(*image.size)
        left, upper, right, lower = target
        resized = image.resize((right - left, lower - upper), Image.Resampling.BILINEAR, box=source)
        if resized.size == (self.side, self.side):
            return np.asarray(resized)
        square = grey(image.mode, (self.side, self.side))
        square.paste(resized, (left, upper))
        return np.asarray(square)

    def to_original(
        self, anomaly_map: NDArray[np.float32], width: int, height: int, pose: Pose | None = None
    ) -> NDArray[np.float32]:
        """A map of the square, (side, side), as a map of the original image, (height, width); 0
        where it was cut off and outside of the region of interest.
        """
        original = self._at_usual_place(anomaly_map, width, height)
        original = brought_back(original, pose) if pose else original
        outside = self.outside(width, height, pose)
        return original if outside is None else np.where(outside, np.float32(0), original)

    def _at_usual_place(
        self, anomaly_map: NDArray[np.float32], width: int, height: int
    ) -> NDArray[np.float32]:
        if self.roi is None:
            return self._spread(anomaly_map, width, height)
        left, upper, right, lower = self._read((width, height))
        part = self._spread(anomaly_map, right - left, lower - upper)
        if self.counted is not None:
            # Zeros beyond the edge of the region must not dim what is next to them.
            weight = self._spread(self.counted.astype(np.float32), right - left, lower - upper)
            part = np.divide(part, np.maximum(weight, 0.25), dtype=np.float32)
        original = np.zeros((height, width), dtype=np.float32)
        original[upper:lower, left:right] = part
        return original

    @cached_property
    def counted(self) -> MaskPixels | None:
        """Which pixels of the square count, (side, side); None where all do."""
        if self.roi is None:
            return None
        inside = self.roi.inside(self.roi.frame, self._read(self.roi.frame))
        if inside is None:
            return None
        source, (left, upper, right, lower) = self._boxes(*inside.size)
        square = np.zeros((self.side, self.side), dtype=np.float32)
        square[upper:lower, left:right] = coverage(inside, (right - left, lower - upper), source)
        return mostly(square)

    def outside(self, width: int, height: int, pose: Pose | None = None) -> MaskPixels | None:
        """Which pixels of an image of this size are outside of the region of interest, (height,
        width), which moves with the part; None where there is none.
        """
        if self.roi is None:
            return None
        outside = self.roi.outside((width, height))
        return brought_back((~outside).astype(np.float32), pose) < HALF if pose else outside

    def check(self, name: str, size: Size, smallest: int = 1) -> None:
        """Refuse an image in which the region of interest or the part would be elsewhere, or not
        even the smallest window of any scale finds its place.
        """
        if self.frame and not same_aspect(size, self.frame):
            what, flags = (
                ("the region of interest was given for", "--roi and --ignore")
                if self.roi
                else ("the images to align with had", "--align")
            )
            raise UserError(
                f"{name}: {size[0]}x{size[1]} pixels have another aspect ratio than the "
                f"{self.frame[0]}x{self.frame[1]} that {what}; bring the image to that shape, or "
                f"train again without {flags}"
            )
        left, upper, right, lower = self._read(size)
        read = right - left, lower - upper
        if min(read) < smallest:
            what = "pixels" if self.roi is None else "pixels in the region of interest"
            raise UserError(
                f"{name}: {read[0]}x{read[1]} {what} are fewer than the model can read; "
                f"the shorter side must have at least {smallest}"
            )

    def _read(self, size: Size) -> Box:
        """The part of an image of this size that is fitted to the square."""
        return self.roi.crop_in(size, self.fit == "crop") if self.roi else (0, 0, *size)

    def _spread(
        self, anomaly_map: NDArray[np.float32], width: int, height: int
    ) -> NDArray[np.float32]:
        """A map of the square over what was fitted to it; 0 where it was cut off."""
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


def stack(squares: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Square pixels (side, side[, 3]) as one array (n, channels, side, side)."""
    stacked = np.stack([square if square.ndim == 3 else square[:, :, None] for square in squares])
    return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
