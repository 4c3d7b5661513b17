"""Tiles cover an image, and their maps become one without seams."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from igd.data.geometry import Geometry
from igd.data.tiles import Tiling, check_tile_fits, tile_of
from igd.errors import UserError

CASES = pytest.mark.parametrize("tiling", [Tiling(8, 0), Tiling(17, 0.5), Tiling(64, 1 / 16)])
SIZES = pytest.mark.parametrize(("wider", "higher"), [(0, 0), (1, 63), (64, 0), (133, 91)])


@CASES
@SIZES
def test_tiles_cover_the_image_and_overlap_as_asked(
    tiling: Tiling, wider: int, higher: int
) -> None:
    width, height = tiling.side + wider, tiling.side + higher
    covered = np.zeros((height, width), dtype=int)
    boxes = tiling.boxes(width, height)
    for left, upper, right, lower in boxes:
        assert right - left == lower - upper == tiling.side
        covered[upper:lower, left:right] += 1
    assert covered.min() >= 1
    starts = sorted({left for left, *_ in boxes})
    assert (starts[0], starts[-1]) == (0, width - tiling.side)
    shared = round(tiling.overlap * tiling.side)
    assert all(b - a <= tiling.side - shared + 1 for a, b in pairwise(starts))


@CASES
@SIZES
def test_stitching_the_pieces_of_a_map_gives_the_map(
    tiling: Tiling, wider: int, higher: int
) -> None:
    width, height = tiling.side + wider, tiling.side + higher
    whole = np.random.default_rng(0).random((height, width), dtype=np.float32)
    pieces = [whole[u:lo, le:r] for le, u, r, lo in tiling.boxes(width, height)]
    np.testing.assert_allclose(tiling.stitched(pieces, width, height), whole, atol=1e-5)


def test_a_tile_counts_least_at_its_edge() -> None:
    tiling = Tiling(32, 0.25)
    left, right = np.zeros((32, 32), np.float32), np.ones((32, 32), np.float32)
    row = tiling.stitched([left, right], 56, 32)[0]
    assert (row[:24] == 0).all()
    assert (row[32:] == 1).all()
    steps = np.diff(row[23:33])
    assert (steps > 0).all()
    assert steps.max() < 0.2


def test_a_tile_is_cut_where_its_box_is() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    np.testing.assert_array_equal(
        tile_of(pixels, (10, 5, 42, 37), Geometry(32)), pixels[5:37, 10:42]
    )
    halved = Image.fromarray(pixels[5:37, 10:42]).resize((16, 16), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(
        tile_of(pixels, (10, 5, 42, 37), Geometry(16)), np.asarray(halved)
    )


def test_an_image_without_room_for_a_tile_is_refused() -> None:
    check_tile_fits("a.png", (64, 64), Tiling(64, 0))
    with pytest.raises(UserError, match=r"a.png: 80x60 pixels have no room for a tile of 64"):
        check_tile_fits("a.png", (80, 60), Tiling(64, 0))
    with pytest.raises(UserError, match=r"own in this model"):
        check_tile_fits("a.png", (128, 128), Tiling(64, 0, (128, 96)))


@pytest.mark.parametrize(
    "tiling", [Tiling(0, 0), Tiling(5000, 0), Tiling(64, 0.6), Tiling(64, 0, (128, 32))]
)
def test_no_tiling_can_be_so(tiling: Tiling) -> None:
    with pytest.raises(ValueError, match="impossible"):
        tiling.check()
