"""A sample of tiles to learn from, and whole images again when they are needed."""

import numpy as np
import torch

from igd.data.geometry import Geometry
from igd.data.sources import as_source
from igd.data.tile_set import TileSet, sample_tiles
from igd.data.tiles import Tiling
from igd.progress import Progress

SIDE, TILING = 32, Tiling(32, 0)
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 64, 96), dtype=np.uint8)


def sampled(each: int) -> TileSet:
    return sample_tiles(
        as_source(IMAGES), Geometry(SIDE), TILING, each, 0, strict=True, progress=Progress()
    )


def test_every_place_is_sampled_about_equally_often() -> None:
    tiles = sampled(each=4)
    counts = torch.bincount(tiles.places, minlength=6)
    assert counts.tolist() == [4] * 6
    assert all(len({*own.tolist()}) >= 3 for own in tiles.places.view(6, 4))


def test_a_sampled_tile_is_that_of_its_place() -> None:
    tiles = sampled(each=2)
    boxes = TILING.boxes(96, 64)
    for row, place in enumerate(tiles.places.tolist()):
        left, upper, right, lower = boxes[place]
        expected = IMAGES[row // 2, upper:lower, left:right]
        np.testing.assert_array_equal(tiles.pixels[torch.tensor([row])][0, 0].numpy(), expected)


def test_some_images_keep_all_of_their_tiles() -> None:
    tiles, numbers = sampled(each=2), torch.tensor([4, 1])
    some = tiles.subset(numbers)
    assert (len(some), some.names) == (2, ["4", "1"])
    np.testing.assert_array_equal(
        some.pixels[torch.arange(4)], tiles.pixels[torch.tensor([8, 9, 2, 3])]
    )
    assert some.places.tolist() == tiles.places[torch.tensor([8, 9, 2, 3])].tolist()
    assert some.spreads == [tiles.spreads[4], tiles.spreads[1]]
    assert min(some.spreads) > 50
    for whole, number in zip(some.wholes([1, 0]), [1, 4], strict=True):
        np.testing.assert_array_equal(whole, IMAGES[number])
