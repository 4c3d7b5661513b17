"""A marked pixel of any image is found again in the map, at its own place."""

import numpy as np
import pytest
from PIL import Image

from igd.data.geometry import FITS, LARGEST_SIDE, Geometry
from igd.data.roi import Roi


@pytest.mark.parametrize("rectangle", [None, (90, 180)])
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("size", [(300, 200), (200, 300), (64, 64), (999, 41), (40, 30)])
def test_a_marked_spot_comes_back_to_its_place(fit, size: tuple[int, int], rectangle) -> None:
    width, height = size
    geometry = Geometry(128, fit, rectangle=rectangle)
    spot = max(3, min(size) // 8)
    left, top = width // 2 + min(size) // 5 - spot // 2, height // 2 - min(size) // 4 - spot // 2
    pixels = np.zeros((height, width), dtype=np.uint8)
    pixels[top : top + spot, left : left + spot] = 255
    read = geometry.to_model(Image.fromarray(pixels))
    assert read.shape == geometry.shape == (rectangle or (128, 128))
    anomaly_map = geometry.to_original(
        np.where(read != 128, read, 0).astype(np.float32), width, height
    )
    assert anomaly_map.shape == (height, width)
    rows, columns = np.nonzero(anomaly_map > anomaly_map.max() / 2)
    tolerance = 1 + max(size) / min(geometry.shape)
    assert abs(rows.mean() - (top + (spot - 1) / 2)) <= tolerance
    assert abs(columns.mean() - (left + (spot - 1) / 2)) <= tolerance


def test_crop_leaves_the_rest_unseen_and_letterbox_sees_all() -> None:
    full = np.ones((64, 64), dtype=np.float32)
    cropped = Geometry(64, "crop").to_original(full, 100, 50)
    assert (cropped[:, 25:75] == 1).all()
    assert cropped[:, :25].max() == cropped[:, 75:].max() == 0
    assert Geometry(64, "letterbox").to_original(full, 100, 50).min() == 1


def test_the_models_own_size_is_untouched() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    for fit in FITS:
        np.testing.assert_array_equal(Geometry(64, fit).to_model(Image.fromarray(pixels)), pixels)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("size", [(301, 173), (173, 301)])
@pytest.mark.parametrize("corner", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_one_marked_pixel_in_each_quarter_is_found_in_the_square_and_again_in_the_original(
    fit, size: tuple[int, int], corner: tuple[int, int]
) -> None:
    """A pixel near each corner of what the fit looks at: turned, mirrored or shifted maps would
    miss it.
    """
    width, height = size
    geometry = Geometry(128, fit)
    left, top, right, lower = (0, 0, width, height)
    if fit == "crop":
        shorter = min(size)
        left, top = (width - shorter) // 2, (height - shorter) // 2
        right, lower = left + shorter, top + shorter
    row, column = (top + 9, lower - 10)[corner[0]], (left + 9, right - 10)[corner[1]]
    pixels = np.zeros((height, width), dtype=np.uint8)
    pixels[row, column] = 255
    square = geometry.to_model(Image.fromarray(pixels))
    seen = np.where(square != 128, square, 0).astype(np.float32)  # without letterbox's bars
    anomaly_map = geometry.to_original(seen, width, height)
    found = np.unravel_index(int(anomaly_map.argmax()), anomaly_map.shape)
    tolerance = max(size) / 128 + 1  # a pixel of the square covers about so many of the original
    assert abs(found[0] - row) <= tolerance
    assert abs(found[1] - column) <= tolerance


@pytest.mark.parametrize("size", [(640, 256), (256, 640), (1280, 960), (300, 200)])
def test_a_rectangle_has_the_images_proportions_and_the_squares_pixels(
    size: tuple[int, int],
) -> None:
    geometry = Geometry(256).in_proportion(size)
    rows, columns = geometry.shape
    assert columns / rows == pytest.approx(size[0] / size[1], rel=0.02)
    assert rows * columns == pytest.approx(256**2, rel=0.02)


def test_what_is_nearly_square_stays_a_square_and_what_is_very_long_is_stretched() -> None:
    assert Geometry(256).in_proportion((270, 256)) == Geometry(256)
    rows, columns = Geometry(256).in_proportion((5000, 100)).shape
    assert columns / rows == pytest.approx(4, rel=0.02)
    assert max(Geometry(LARGEST_SIDE).in_proportion((5000, 100)).shape) == LARGEST_SIDE


def test_a_rectangle_of_more_pixels_than_its_square_is_refused() -> None:
    with pytest.raises(ValueError, match="more pixels"):
        Geometry(64, rectangle=(128, 64))


def test_the_proportions_are_those_of_what_is_read_around_a_region() -> None:
    region = Roi(frame=(400, 200), box=(0, 50, 100, 100))
    assert Geometry(128, roi=region).in_proportion((400, 200)).shape == (91, 181)
