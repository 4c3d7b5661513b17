"""Decoded pixels: in memory as far as they fit, in a temporary file where they do not.

Whoever reads them gives the numbers of some images and gets those; a plain tensor serves as well.
Memory stays flat because only the images asked for are read: a mapped file would count every page
it touched as ours.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from igd.errors import UserError
from igd.files import make_folder

HELD = (
    2**29
    # Bytes of pixels held in memory: training at 256 pixels takes 1 GB beside them, and 2 GB should
    # do for all.
)
# Environment variable: the folder for pixels that don't fit; by default the system's for temporary
# files.
CACHE = "IGD_CACHE"

ModelImage = NDArray[np.uint8]  # an image at the model's size, (rows, columns[, 3])


class Pixels(Protocol):
    """Images by number, uint8 (n, channels, rows, columns)."""

    @property
    def shape(self) -> Sequence[int]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, indices: Tensor, /) -> Tensor: ...
    def split(self, size: int, /) -> Sequence[Tensor]: ...


class Batches(Sequence[Tensor]):
    """Images in order, some at a time, read when they are asked for."""

    def __init__(self, pixels: Pixels, size: int) -> None:
        self.pixels, self.size = pixels, size

    def __len__(self) -> int:
        return math.ceil(len(self.pixels) / self.size)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.pixels[
            torch.arange(number * self.size, min((number + 1) * self.size, len(self.pixels)))
        ]


class Selection:
    """Some of the images of others, in this order; nothing is copied."""

    def __init__(self, pixels: Pixels, numbers: Tensor) -> None:
        self.pixels, self.numbers = pixels, numbers
        self.shape = (len(numbers), *pixels.shape[1:])

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        return take(self.pixels, self.numbers[indices])

    def split(self, size: int, /) -> Batches:
        return Batches(self, size)


class PixelFile:
    """Images in a file without a name, which the system deletes with the last reference to it,
    however the program ends.
    """

    def __init__(self, file: IO[bytes], shape: tuple[int, ...]) -> None:
        self.file, self.shape = file, shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        images = np.empty((len(indices), *self.shape[1:]), dtype=np.uint8)
        for image, number in zip(images, indices.tolist(), strict=True):
            self.file.seek(number * image.nbytes)
            if self.file.readinto(image.data) != image.nbytes:  # type: ignore[attr-defined]
                raise OSError(
                    "the file of decoded images ends too early; something else cut it off"
                )
        return torch.from_numpy(images)

    def split(self, size: int, /) -> Batches:
        return Batches(self, size)


def take(pixels: Pixels, indices: Tensor) -> Tensor:
    """`pixels[indices]`; of a tensor by `index_select`, which copies whole images and is several
    times faster.
    """
    return pixels.index_select(0, indices) if isinstance(pixels, Tensor) else pixels[indices]


def keep_pixels(images: Iterable[ModelImage], most: int, *, held: int = HELD) -> Pixels:
    """Keep images as they come, `most` at most: as a tensor up to `held` bytes, else in a file."""
    coming = iter(images)
    first = next(coming, None)
    if first is None:
        return torch.empty(0, 1, 1, 1, dtype=torch.uint8)
    shape = _planes(first).shape
    planes = _of_one_shape(chain([first], coming), shape)
    if most * math.prod(shape) <= held:
        return _keep_in_memory(planes, (most, *shape))
    return _keep_in_file(planes, (most, *shape))


def _keep_in_memory(images: Iterator[ModelImage], shape: tuple[int, ...]) -> Tensor:
    kept = np.empty(shape, dtype=np.uint8)
    count = 0
    for image in images:
        kept[count] = image
        count += 1
    return torch.from_numpy(kept[:count])


def _keep_in_file(images: Iterator[ModelImage], shape: tuple[int, ...]) -> PixelFile:
    folder = make_folder(Path(os.environ.get(CACHE) or tempfile.gettempdir()))
    needed = math.prod(shape)
    free = shutil.disk_usage(folder).free
    way_out = (
        f"free some space, or name a folder on a larger disk in the environment variable {CACHE}"
    )
    if free < needed:
        raise UserError(
            f"{folder}: decoded images need {_gigabytes(needed)}, and {_gigabytes(free)} are "
            f"free; {way_out}"
        )
    file = tempfile.TemporaryFile(dir=folder, prefix="igd-")  # noqa: SIM115 - it is to live as long as the pixels do
    try:
        count = 0
        for image in images:
            file.write(np.ascontiguousarray(image).data)
            count += 1
        file.flush()
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            raise UserError(
                f"{folder}: decoded images can't be written ({error.strerror}); {way_out}"
            ) from None
        raise
    return PixelFile(file, (count, *shape[1:]))


def _of_one_shape(images: Iterable[ModelImage], shape: tuple[int, ...]) -> Iterator[ModelImage]:
    for image in images:
        planes = _planes(image)
        if planes.shape != shape:
            raise UserError("the images are grey and in colour; convert them all to one kind")
        yield planes


def _planes(image: ModelImage) -> ModelImage:
    """(rows, columns[, 3]) as (channels, rows, columns)."""
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
