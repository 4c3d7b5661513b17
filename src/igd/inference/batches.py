"""Images on their way to a model: decoded ahead of it, and collected in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.cpu import in_parallel
from igd.data.alignment import Pose
from igd.data.sources import PIXELS_HELD, Source
from igd.errors import UserError
from igd.progress import Progress


class DecodedImage(NamedTuple):
    """An image on its way to the model."""

    pixels: NDArray[np.uint8]  # at the model's size; all of them, where it reads tiles
    size: tuple[int, int]  # width and height of the original
    image: Image.Image | None  # the original, where it is to be kept
    seconds: float = 0.0  # that decoding took
    mismatches: tuple[str, ...] = ()
    pose: Pose | None = None


Batch = list[tuple[int, DecodedImage | Exception | None]]  # numbers of images, and what they are


class BatchReader:
    """The images of a source in batches of `size`. Those whose numbers are in `skip` keep their
    place in a batch, and are read only where others of the batch are wanted.
    """

    def __init__(
        self,
        decode: Callable[[str, Image.Image, bool], DecodedImage],
        source: Source,
        size: int,
        keep_images: bool,
        skip: Container[int],
    ) -> None:
        self.decode, self.source, self.size = decode, source, size
        self.keep_images, self.skip = keep_images, skip
        self.pixels = cache(source.pixels)

    def batches(self, progress: Progress) -> Iterator[Batch]:
        """One batch after another; with `keep_images`, no batch holds many more pixels than
        `PIXELS_HELD`.
        """
        pending, held = Batch(), 0
        for number, decoded in progress.track(self._read_ahead(), len(self.source), "scoring"):
            if isinstance(decoded, Exception) and not isinstance(decoded, UserError):
                yield pending
                raise decoded
            pending.append((number, decoded))
            if self.keep_images:
                width, height = decoded.size if isinstance(decoded, DecodedImage) else (0, 0)
                held += max(self.pixels(number), width * height)
            del decoded
            if len(pending) == self.size or held > PIXELS_HELD:
                yield pending
                pending, held = Batch(), 0
        yield pending

    def named(self, batch: Batch) -> list[tuple[str, DecodedImage | UserError]]:
        """The images of a batch, those to skip among them, by name; none, if all are skipped."""
        if not any(self.wanted(batch)):
            return []
        images = ((n, self._read(n) if decoded is None else decoded) for n, decoded in batch)
        return [(self.source.names[n], _decoded_or_refused(image)) for n, image in images]

    def wanted(self, batch: Batch) -> list[bool]:
        """Which images of a batch are not to be skipped."""
        return [number not in self.skip for number, _ in batch]

    def _read_ahead(self) -> Iterator[tuple[int, DecodedImage | Exception | None]]:
        numbers = range(len(self.source))
        images = in_parallel(
            lambda n: None if n in self.skip else self._read(n),
            numbers,
            lambda n: 0 if n in self.skip else self.pixels(n),
            PIXELS_HELD,
        )
        return zip(numbers, images, strict=True)

    def _read(self, number: int) -> DecodedImage | Exception:
        """An error is raised in its turn, after what came before it was predicted."""
        started = time.perf_counter()
        try:
            image = self.source.read(number)
            decoded = self.decode(self.source.names[number], image, self.keep_images)
        except Exception as error:
            return error
        return decoded._replace(seconds=time.perf_counter() - started)


def _decoded_or_refused(decoded: DecodedImage | Exception) -> DecodedImage | UserError:
    if isinstance(decoded, DecodedImage | UserError):
        return decoded
    raise decoded
