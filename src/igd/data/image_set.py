"""Images decoded once, to the size that a model reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from igd.cpu import in_parallel
from igd.data.alignment import drawn_shift
from igd.data.decoding import DEEP, MODE, UnreadableImage
from igd.data.geometry import Geometry
from igd.data.sources import PIXELS_HELD, Source
from igd.data.store import HELD, ModelImage, Pixels, Selection, keep_pixels
from igd.errors import UserError
from igd.progress import Progress

# Share of a deep file's range; images that use no more of it keep a quarter of the grey levels, or
# fewer.
DIM = 0.25

Cut = Callable[[int, Image.Image], list[ModelImage]]  # what is read of an image, by its number


@dataclass
class ImageSet:
    """Decoded images at the size the model reads."""

    pixels: Pixels  # uint8, (n, channels, rows, columns)
    names: list[str]
    sizes: list[tuple[int, int]]  # width and height of each original
    skipped: list[str] = field(default_factory=list)  # why each unreadable image was left out
    modes: list[str] = field(default_factory=list)  # of each original, as Pillow calls them
    numbers: list[int] = field(default_factory=list)  # of each in its source

    def __len__(self) -> int:
        return len(self.names)

    def subset(self, numbers: Tensor) -> ImageSet:
        """Some of the images; their pixels are not copied."""
        return ImageSet(
            Selection(self.pixels, numbers),
            [self.names[n] for n in numbers],
            [self.sizes[n] for n in numbers],
            self.skipped,
            [self.modes[n] for n in numbers] if self.modes else [],
            [self.numbers[n] for n in numbers] if self.numbers else [],
        )


def decode(
    source: Source,
    geometry: Geometry,
    *,
    strict: bool = False,
    progress: Progress,
    held: int = HELD,
    learning: bool = False,
    cut: Cut | None = None,
    each: int = 1,
) -> ImageSet:
    """Decode every image once, in parallel. An unreadable one is named and left out or, if
    `strict`, refused.

    Up to `held` bytes the pixels stay in memory, above in a temporary file. Of each image the model
    reads one, or as many as `cut` makes: `each`. Images that are to be learnt from and are aligned
    forget some of their edge (`learning`).
    """
    names: list[str] = []
    sizes: list[tuple[int, int]] = []
    skipped: list[str] = []
    modes: list[str] = []
    numbers: list[int] = []
    used: list[float] = []  # of the range that deep images have, the share each one uses

    def readable() -> Iterator[NDArray[np.uint8]]:
        decoding = progress.track(
            _model_images(source, geometry, learning, cut), len(source), "reading images"
        )
        for number, (name, decoded) in enumerate(decoding):
            if isinstance(decoded, UnreadableImage):
                if strict:
                    raise decoded
                skipped.append(str(decoded))
                continue
            own, size, share, mode = decoded
            modes.append(mode)
            numbers.append(number)
            names.append(name)
            sizes.append(size)
            used.extend(() if share is None else (share,))
            yield from own

    pixels = keep_pixels(readable(), each * len(source), held=held)
    if not names:
        raise UserError(
            f"{source.described}: none of the {len(source)} images can be read; the first: "
            f"{skipped[0]}"
        )
    for message in skipped:
        progress.say(f"left out: {message}")
    _warn_of_depth(used, len(names), source, progress)
    return ImageSet(pixels, names, sizes, skipped, modes, numbers)


def _warn_of_depth(used: list[float], count: int, source: Source, progress: Progress) -> None:
    """Say where reducing images to 8 bits loses more than it should."""
    if 0 < len(used) < count:
        progress.say(
            f"{source.described}: {len(used)} of {count} images have more than 8 bits, the others "
            f"not; "
            "the same grey may mean different things in them"
        )
    if used and max(used) <= DIM:
        progress.say(
            f"{source.described}: 16-bit images that use no more than {max(used):.1%} of their "
            f"range: about "
            f"{round(255 * max(used)) + 1} of 256 grey levels remain; stretch them to the whole "
            f"range first"
        )


def _model_images(
    source: Source, geometry: Geometry, learning: bool, cut: Cut | None
) -> Iterator[tuple[str, Any]]:
    def read(number: int) -> Any:
        try:
            image = source.read(number)
        except UnreadableImage as error:
            return error
        geometry.check(source.names[number], image.size)
        mode = image.info.get(MODE, image.mode)
        forget = drawn_shift(number, image.size) if learning and geometry.align else None
        own = (
            cut(number, image) if cut else [geometry.to_model(image, geometry.pose(image), forget)]
        )
        return own, image.size, image.info.get(DEEP), mode

    images = in_parallel(read, range(len(source)), source.pixels, PIXELS_HELD)
    yield from zip(source.names, images, strict=True)


def check_one_size(images: ImageSet, source: Source) -> None:
    """Refuse a training set of several sizes: in a set of one product it is usually a mistake, and
    stretching hides it.
    """
    sizes = Counter(images.sizes)
    if len(sizes) > 1:
        (usual, count), (other, _) = sizes.most_common(2)
        example = images.names[images.sizes.index(other)]
        raise UserError(
            f"{source.described}: images of {len(sizes)} different sizes ({count} are "
            f"{usual[0]}x{usual[1]}, but {example} is "
            f"{other[0]}x{other[1]}); if that is right, say how they become one size: resize, "
            f"crop or letterbox (--fit; in Python, fit_to)"
        )
