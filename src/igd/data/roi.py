"""The region of interest: the part of a fixed frame that a model reads, and what of it counts.

What is read is the smallest part of the image around the region that has the shape of the image: it
gets all of the model's pixels, and is stretched no more than the image would be. What of it is
beside the region is painted grey, so that nothing outside can change a score.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Box = tuple[int, int, int, int]  # left, upper, right, lower
Size = tuple[int, int]  # width, height
MaskPixels = NDArray[np.bool_]  # (height, width)
FINEST = 512  # pixels of a mask's longer side as a model keeps it
ASPECT = 0.02  # by which the ratio of two images' sides may differ
GREY = 128
HALF = 0.5


@dataclass(frozen=True)
class Roi:
    """The box around the region in a frame, and a mask of the box, as a model file holds them."""

    frame: Size  # of the images that it was given for
    box: Box
    mask: str | None = None  # of the box, packed bits in base64; None: all of it counts
    mask_size: Size | None = None

    def __post_init__(self) -> None:
        """A file may say anything."""
        possible = is_within(self.box, self.frame)
        if self.mask is not None:
            possible = (
                possible
                and self.mask_size is not None
                and 0 < min(self.mask_size) <= max(self.mask_size) <= FINEST
                and bool(self.pixels.any())
            )
        if not possible:
            raise ValueError("an impossible region of interest")

    @staticmethod
    def of(inside: MaskPixels) -> Roi:
        """The region of the pixels of a frame that count: at least one."""
        rows, columns = (np.flatnonzero(inside.any(axis=axis)) for axis in (1, 0))
        box = int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
        frame = inside.shape[1], inside.shape[0]
        part = inside[box[1] : box[3], box[0] : box[2]]
        if part.all():
            return Roi(frame, box)
        shrinkage = min(1.0, FINEST / max(part.shape))
        size = tuple(max(1, round(side * shrinkage)) for side in part.shape[::-1])
        packed = np.packbits(mostly(coverage(Image.fromarray(part), (size[0], size[1]))))
        return Roi(
            frame, box, base64.b64encode(packed.tobytes()).decode("ascii"), (size[0], size[1])
        )

    @cached_property
    def pixels(self) -> MaskPixels:
        """The mask of the box, as fine as it was kept."""
        if self.mask is None or self.mask_size is None:
            return np.ones((1, 1), dtype=bool)
        width, height = self.mask_size
        bits = np.unpackbits(np.frombuffer(base64.b64decode(self.mask, validate=True), np.uint8))
        return bits[: width * height].reshape(height, width).astype(bool)

    def described(self) -> dict[str, Any]:
        """For people: frame, box as x, y, width and height, and the share of it that counts."""
        left, upper, right, lower = self.box
        return {
            "frame": list(self.frame),
            "box": [left, upper, right - left, lower - upper],
            "share": float(self.pixels.mean()),
        }

    def box_in(self, size: Size) -> Box:
        """The box in an image of this size."""
        return scaled(self.box, self.frame, size)

    def crop_in(self, size: Size, square: bool) -> Box:
        """What is read of an image of this size: the smallest part of its shape, or the smallest
        square, that holds the box, as far as the image goes.
        """
        left, upper, right, lower = self.box_in(size)
        shape = (1, 1) if square else size
        scale = max((right - left) / shape[0], (lower - upper) / shape[1])
        width, height = (
            min(whole, math.ceil(scale * side - 1e-9))
            for whole, side in zip(size, shape, strict=True)
        )
        x = min(max(0, (left + right - width) // 2), size[0] - width)
        y = min(max(0, (upper + lower - height) // 2), size[1] - height)
        return x, y, x + width, y + height

    def cut(self, image: Image.Image, crop: Box) -> Image.Image:
        """A part of an image, with what is outside of the region in grey."""
        part, inside = image.crop(crop), self.inside(image.size, crop)
        if inside is None:
            return part
        return Image.composite(part, grey(image.mode, part.size), inside)

    def inside(self, size: Size, crop: Box) -> Image.Image | None:
        """The region in a part of an image of this size, in black and white; None where it is all
        of it.
        """
        left, upper, right, lower = box = self.box_in(size)
        if self.mask is None and box == crop:
            return None
        inside = Image.new("1", (crop[2] - crop[0], crop[3] - crop[1]))
        mask = Image.fromarray(self.pixels)
        mask = mask.resize((right - left, lower - upper), Image.Resampling.NEAREST)
        inside.paste(mask, (left - crop[0], upper - crop[1]))
        return inside

    def outside(self, size: Size) -> MaskPixels:
        """Which pixels of an image of this size do not count: (height, width)."""
        inside = self.inside(size, (0, 0, *size))
        return np.zeros(size[::-1], dtype=bool) if inside is None else ~np.asarray(inside)


def is_within(box: Box, frame: Size) -> bool:
    """Whether a box has a size and lies in a frame."""
    left, upper, right, lower = box
    return 0 <= left < right <= frame[0] and 0 <= upper < lower <= frame[1]


def scaled(box: Box, frame: Size, size: Size) -> Box:
    """A box of a frame in an image of another size."""
    left, upper, right, lower = (
        round(place * size[axis % 2] / frame[axis % 2]) for axis, place in enumerate(box)
    )
    left, upper = min(left, size[0] - 1), min(upper, size[1] - 1)
    return left, upper, max(right, left + 1), max(lower, upper + 1)


def same_aspect(one: Size, other: Size) -> bool:
    """Whether two images differ in scale alone."""
    return abs(one[0] * other[1] / (one[1] * other[0]) - 1) <= ASPECT


def grey(mode: str, size: Size) -> Image.Image:
    """What is shown to a model where there is nothing to show."""
    return Image.new(mode, size, GREY if mode == "L" else (GREY, GREY, GREY))


def mostly(covered: NDArray[np.float32]) -> MaskPixels:
    """Which of several places count, by the shares of them that a mask covers: at least half of
    what the best one has, so that a mask thinner than any place has some too.
    """
    counting: MaskPixels = covered >= HALF * covered.max()
    return counting


def coverage(mask: Image.Image, size: Size, box: Box | None = None) -> NDArray[np.float32]:
    """The share of each pixel of another size that a mask, or a part of it, covers: (height,
    width).
    """
    covered = mask.convert("F").resize(size, Image.Resampling.BOX, box=box)
    return np.asarray(covered, dtype=np.float32) / np.float32(255)
