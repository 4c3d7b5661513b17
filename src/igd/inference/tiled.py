"""One score and one map of an image that is read in tiles: the score of its worst tile, and all
tiles' maps together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from igd.data.geometry import Geometry, stack
from igd.data.tiles import Tiling, Whole, tile_of

PIXELS_AT_ONCE = 16 * 256 * 256  # scored together

Scores = tuple[
    NDArray[np.float32], NDArray[np.float32], dict[str, NDArray[np.float32]]
]  # of tiles: scores (b,), maps (b, side, side), terms (b,) each


class TiledScores(NamedTuple):
    """What a model says of an image, as of a batch of one."""

    score: NDArray[np.float32]  # (1,)
    map: NDArray[np.float32]  # (1, height, width) of the image
    terms: dict[str, NDArray[np.float32]]  # (1,) each, of the worst tile


def score_in_tiles(
    score_batch: Callable[..., Scores], pixels: Whole, tiling: Tiling, geometry: Geometry
) -> TiledScores:
    """Score an image in batches of tiles; beside its map, no more than a batch is held."""
    height, width = pixels.shape[:2]
    scores: list[NDArray[np.float32]] = []
    terms: list[dict[str, NDArray[np.float32]]] = []

    def maps() -> Iterator[NDArray[np.float32]]:
        for tiles, places in tile_batches(pixels, tiling, geometry):
            own = None if tiling.size is None else places
            score, anomaly_maps, said = score_batch(tiles, own)
            scores.append(score)
            terms.append(said)
            yield from anomaly_maps

    whole = stitch(maps(), (width, height), tiling, geometry)
    every = np.concatenate(scores)
    worst = int(every.argmax())
    named = {
        name: np.concatenate([each[name] for each in terms])[worst : worst + 1] for name in terms[0]
    }
    return TiledScores(every[worst : worst + 1], whole[None], named)


def tile_batches(
    pixels: Whole, tiling: Tiling, geometry: Geometry
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """All tiles of an image at the model's size, (b, channels, side, side), and the number of each
    one's place.
    """
    height, width = pixels.shape[:2]
    boxes = tiling.boxes(width, height)
    at_once = max(1, PIXELS_AT_ONCE // geometry.side**2)
    for first in range(0, len(boxes), at_once):
        some = [tile_of(pixels, box, geometry) for box in boxes[first : first + at_once]]
        yield stack(some), np.arange(first, first + len(some))


def stitch(
    maps: Iterator[NDArray[np.float32]], size: tuple[int, int], tiling: Tiling, geometry: Geometry
) -> NDArray[np.float32]:
    """Maps of all tiles of an image, (side, side) of the model, as one map of the image."""
    tiles = (geometry.to_original(each, tiling.side, tiling.side) for each in maps)
    return tiling.stitched(tiles, *size)
