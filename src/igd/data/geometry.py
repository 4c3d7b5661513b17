"""How an image of any size becomes the square or the rectangle a model reads, and how the model's
map finds its way back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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
NEARLY_SQUARE = 1.1  # the longer side of what is read as a square, in units of the shorter one
LONGEST = 4.0  # the same of a rectangle; what is longer is stretched


@dataclass(frozen=True)
class Geometry:
    """A square of `side` pixels, or a rectangle of about as many, and how an image is fitted to it:
    all of it, aligned if wanted, or its region of interest.

    resize     both sides stretched
    crop       the largest centred square; what is beside it is not read
    letterbox  the whole image, shrunk, between two grey bars
    """

    side: int
    fit: Fit = "resize"
    roi: Roi | None = None
    align: Alignment | None = None
    rectangle: tuple[int, int] | None = None  # rows and columns, where it is no square

    def __post_init__(self) -> None:
        """A file may say anything."""
        if self.rectangle and math.prod(self.rectangle) > (self.side + 1) ** 2:
            raise ValueError("a rectangle of more pixels than its square has")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of what the model reads."""
        return self.rectangle or (self.side, self.side)

    def in_proportion(self, size: Size) -> Geometry:
        """The same with the proportions of what is read of images of this size: stretched to a
        square, a long image would lose most of its detail along its longer side.
        """
        left, upper, right, lower = self._read(size)
        aspect = min(max((right - left) / (lower - upper), 1 / LONGEST), LONGEST)
        if max(aspect, 1 / aspect) < NEARLY_SQUARE:
            return self
        rows, columns = (round(self.side * aspect**power) for power in (-0.5, 0.5))
        return replace(self, rectangle=(min(rows, LARGEST_SIDE), min(columns, LARGEST_SIDE)))

    @property
    def frame(self) -> Size | None:
        """Of images in which a place means something; None where any shape will do."""
        fixed = self.roi or self.align
        return None if fixed is None else fixed.frame

    def pose(self, image: Image.Image) -> Pose | None:
        """How far the part lies from its usual place; None where images are taken as they are."""
        return None if self.align is None else self.align.pose(image)

    def to_model(
        self, image: Image.Image, pose: Pose | None = None, forget: tuple[int, int] | None = None
    ) -> NDArray[np.uint8]:
        """The pixels the model reads of an image at a pose, (rows, columns, channels); without
        those that a shift would have hidden, if it is to forget them.
        """
        image = aligned(image, pose) if pose else image
        image = forgotten(image, *forget) if forget else image
        image = self.roi.cut(image, self._read(image.size)) if self.roi else image
        source, target = self._boxes(*image.size)
        left, upper, right, lower = target
        resized = image.resize((right - left, lower - upper), Image.Resampling.BILINEAR, box=source)
        if resized.size == self.shape[::-1]:
            return np.asarray(resized)
        framed = grey(image.mode, self.shape[::-1])
        framed.paste(resized, (left, upper))
        return np.asarray(framed)

    def to_original(
        self, anomaly_map: NDArray[np.float32], width: int, height: int, pose: Pose | None = None
    ) -> NDArray[np.float32]:
        """A map of what the model reads, (rows, columns), as a map of the original image, (height,
        width); 0 where it was cut off and outside of the region of interest.
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
        """Which pixels of what the model reads count, (rows, columns); None where all do."""
        if self.roi is None:
            return None
        inside = self.roi.inside(self.roi.frame, self._read(self.roi.frame))
        if inside is None:
            return None
        source, (left, upper, right, lower) = self._boxes(*inside.size)
        covered = np.zeros(self.shape, dtype=np.float32)
        covered[upper:lower, left:right] = coverage(inside, (right - left, lower - upper), source)
        return mostly(covered)

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
        """The part of an image of this size that is fitted to what the model reads."""
        return self.roi.crop_in(size, self.fit == "crop") if self.roi else (0, 0, *size)

    def _spread(
        self, anomaly_map: NDArray[np.float32], width: int, height: int
    ) -> NDArray[np.float32]:
        """A map of what the model reads over what was fitted to it; 0 where it was cut off."""
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
        """The part of the image that is used, and the part of the model's that it fills."""
        rows, columns = self.shape
        whole, filled = (0, 0, width, height), (0, 0, columns, rows)
        if self.fit == "crop":
            shorter = min(width, height)
            left, upper = (width - shorter) // 2, (height - shorter) // 2
            return (left, upper, left + shorter, upper + shorter), filled
        if self.fit == "letterbox":
            scale = min(columns / width, rows / height)
            wide, high = (
                min(most, max(1, round(length * scale)))
                for length, most in ((width, columns), (height, rows))
            )
            left, upper = (columns - wide) // 2, (rows - high) // 2
            return whole, (left, upper, left + wide, upper + high)
        return whole, filled


def stack(images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Images at the model's size, (rows, columns[, 3]), as one array (n, channels, rows,
    columns).
    """
    stacked = np.stack([image if image.ndim == 3 else image[:, :, None] for image in images])
    return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
