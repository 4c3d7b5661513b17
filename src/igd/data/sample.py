"""A sample: an image and what is known about it, wherever it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.decoding import UnreadableImage, claimed_pixels, read_image
from igd.errors import UserError

Split = Literal["train", "test"]
NORMAL = "good"  # the kind of a normal image


class UnusableMask(UserError):
    """A mask that says nothing about where the defect of its image is."""


@dataclass(frozen=True)
class Sample:
    """One image of a data set."""

    identifier: str  # what a person would call it: its path, or 'test 17'
    image: Path | NDArray[np.uint8]  # a file, or pixels (h, w[, 3])
    kind: str = NORMAL  # 'good', or the name of its defect or class
    label: int = 0  # 1 for an anomalous image
    mask: Path | NDArray[np.bool_] | None = None  # where the defect is; None: nowhere, or not known
    split: Split = "test"
    group: str | None = None  # what it shares with other images: a patient, a part

    def read(self) -> Image.Image:
        """The image in 8-bit RGB, or in grey where the source has grey arrays."""
        return (
            read_image(self.image) if isinstance(self.image, Path) else Image.fromarray(self.image)
        )

    def pixels(self) -> int:
        """How many the image has, before it is decoded."""
        if isinstance(self.image, Path):
            return claimed_pixels(self.image)
        height, width = self.image.shape[:2]
        return int(height * width)

    def read_mask(self, size: tuple[int, int]) -> NDArray[np.bool_] | None:
        """Which pixels of the image, of this width and height, are anomalous: (height, width); None
        where it is not known.
        """
        if self.mask is None:
            return None if self.label else np.zeros(size[::-1], dtype=bool)
        name = self.mask if isinstance(self.mask, Path) else self.identifier
        mask = marked_pixels(self.mask) if isinstance(self.mask, Path) else self.mask
        height, width = mask.shape
        if (width, height) != size:
            raise UserError(
                f"{name}: the mask is {width}x{height}, its image {size[0]}x{size[1]}; they must "
                f"be of one size"
            )
        if not mask.any():
            raise UnusableMask(f"{name}: marks no pixel")
        return mask


def groups_of(samples: Sequence[Sample]) -> list[str] | None:
    """The groups of samples, or None where they have none."""
    known = [sample.group for sample in samples if sample.group is not None]
    if not known:
        return None
    if len(known) < len(samples):
        missing = next(sample.identifier for sample in samples if sample.group is None)
        raise UserError(f"{missing}: has no group, and other images have; every image needs one")
    return known


def marked_pixels(path: Path) -> NDArray[np.bool_]:
    """Marked pixels are those that are not black; in a JPEG, whose black is not quite black, those
    that are light.
    """
    black = 127 if path.suffix.lower() in (".jpg", ".jpeg") else 0
    try:
        marked: NDArray[np.bool_] = np.asarray(read_image(path).convert("L")) > black
    except UnreadableImage as error:
        raise UnusableMask(str(error)) from None
    return marked
