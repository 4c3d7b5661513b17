"""Tiles of large images: some of each image to learn from, and all of one image at a time.

Forty images of twelve megapixels have half a billion pixels, and a descriptor is known long before
it has read all of them: it learns from a sample. Where all tiles of an image are needed, it is
decoded again, so that no more than a few images are ever held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from igd.cpu import in_parallel
from igd.data.geometry import Geometry
from igd.data.image_set import ImageSet, decode
from igd.data.sources import Source
from igd.data.store import Selection
from igd.data.tiles import Tiling, Whole, check_tile_fits, tile_of
from igd.progress import Progress
from igd.rng import generator

SPARSE = 8  # one pixel in so many, along each axis, tells whether an image shows anything
PIXELS_AHEAD = 25_000_000  # of whole images, decoded while others are scored


@dataclass
class TileSet(ImageSet):
    """Images of which some tiles are held, `each` of every image one after another; the others are
    read when they are asked for.
    """

    places: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))  # of each tile
    each: int = 1
    source: Source | None = None
    spreads: list[float] = field(default_factory=list)  # of the pixels of each image

    def subset(self, numbers: Tensor) -> TileSet:
        rows = self.rows(numbers)
        own = super().subset(numbers)
        own.pixels = Selection(self.pixels, rows)
        return TileSet(
            **{name: getattr(own, name) for name in ImageSet.__dataclass_fields__},
            places=self.places[rows],
            each=self.each,
            source=self.source,
            spreads=[self.spreads[n] for n in numbers],
        )

    def rows(self, numbers: Tensor) -> Tensor:
        """The numbers of the held tiles of some images."""
        return (numbers[:, None] * self.each + torch.arange(self.each)).flatten()

    def wholes(self, numbers: Sequence[int]) -> Iterator[Whole]:
        """Some of the images, decoded again, one after another."""
        assert self.source is not None
        read, pixels = self.source.read, self.source.pixels
        yield from in_parallel(
            lambda number: np.asarray(read(self.numbers[number])),
            list(numbers),
            lambda number: pixels(self.numbers[number]),
            PIXELS_AHEAD,
        )


def sample_tiles(
    source: Source,
    geometry: Geometry,
    tiling: Tiling,
    each: int,
    seed: int,
    *,
    strict: bool,
    progress: Progress,
) -> TileSet:
    """Read every image once, and hold `each` of its tiles, so that all places are held about
    equally often.
    """
    dealt: dict[int, list[int]] = {}
    spreads: dict[int, float] = {}

    def cut(number: int, image: Image.Image) -> list[NDArray[np.uint8]]:
        check_tile_fits(source.names[number], image.size, tiling)
        boxes = tiling.boxes(*image.size)
        dealt[number] = _dealt(number, each, len(boxes), seed)
        pixels = np.asarray(image)
        spreads[number] = float(pixels[::SPARSE, ::SPARSE].std())
        return [tile_of(pixels, boxes[place], geometry) for place in dealt[number]]

    images = decode(source, geometry, strict=strict, progress=progress, cut=cut, each=each)
    return TileSet(
        **vars(images),
        places=torch.tensor([place for number in images.numbers for place in dealt[number]]),
        each=each,
        source=source,
        spreads=[spreads[number] for number in images.numbers],
    )


def _dealt(number: int, each: int, places: int, seed: int) -> list[int]:
    """Places of the tiles of an image, as if shuffled decks of all places were dealt to the images
    one after another.
    """
    first, last = number * each, (number + 1) * each
    decks = [
        torch.randperm(places, generator=generator(seed, "tiles", deck)).tolist()
        for deck in range(first // places, (last - 1) // places + 1)
    ]
    start = first - first // places * places
    return [place for deck in decks for place in deck][start : start + each]
