"""A region of interest: what is outside of it is not read, whatever the size of the image."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image

from igd.data.geometry import FITS, Geometry
from igd.data.roi import GREY, Roi
from igd.errors import UserError
from igd.inference.header import read_as

RNG = np.random.default_rng(0)


def disc(width: int, height: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return (x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 3) ** 2


def noise(width: int, height: int) -> np.ndarray:
    return RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [1, 2])
def test_what_is_outside_is_not_read_and_what_is_inside_is(fit, masked: bool, scale: int) -> None:
    inside = np.zeros((80, 120), dtype=bool)
    inside[10:60, 30:100] = disc(70, 50) if masked else True
    geometry = Geometry(64, fit, Roi.of(inside))
    image = noise(120 * scale, 80 * scale)
    outside = geometry.outside(120 * scale, 80 * scale)
    assert outside is not None
    np.testing.assert_array_equal(outside[::scale, ::scale], ~inside)
    changed = np.where(outside[:, :, None], noise(120 * scale, 80 * scale), image)
    before, after = (geometry.to_model(Image.fromarray(each)) for each in (image, changed))
    np.testing.assert_array_equal(before, after)
    row, column = (
        int(each.mean()) for each in np.nonzero(~outside)
    )  # its middle, which every fit reads
    image[row - 3 : row + 3, column - 3 : column + 3] ^= 255
    assert (geometry.to_model(Image.fromarray(image)) != before).any()


@pytest.mark.parametrize("fit", FITS)
def test_a_mark_in_the_region_comes_back_to_its_place_and_none_outside(fit) -> None:
    inside = np.zeros((90, 160), dtype=bool)
    inside[20:80, 60:130] = disc(70, 60)
    geometry = Geometry(96, fit, Roi.of(inside))
    pixels = np.full((90, 160), GREY, dtype=np.uint8)
    pixels[44:50, 90:96] = 255
    square = geometry.to_model(Image.fromarray(pixels)).astype(np.float32)
    back = geometry.to_original((square - GREY).clip(0), 160, 90)
    rows, columns = np.nonzero(back > back.max() / 2)
    assert abs(rows.mean() - 46.5) <= 1.5
    assert abs(columns.mean() - 92.5) <= 1.5
    assert not back[~inside].any()


def test_a_map_is_not_dimmed_at_the_edge_of_the_region() -> None:
    inside = disc(300, 300)
    geometry = Geometry(64, "resize", Roi.of(inside))
    assert geometry.counted is not None
    back = geometry.to_original(geometry.counted.astype(np.float32), 300, 300)
    np.testing.assert_allclose(back[inside], 1, atol=0.1)
    assert not back[~inside].any()


@pytest.mark.parametrize("fit", FITS)
def test_the_mask_of_the_square_is_where_the_region_is_shown(fit) -> None:
    inside = np.zeros((200, 300), dtype=bool)
    inside[40:160, 40:240] = disc(200, 120)
    geometry = Geometry(64, fit, Roi.of(inside))
    shown = geometry.to_model(Image.fromarray(np.where(inside, 255, 0).astype(np.uint8)))
    assert geometry.counted is not None
    assert (geometry.counted == (shown > (255 + GREY) / 2)).mean() > 0.99


def test_a_box_alone_counts_as_a_whole() -> None:
    inside = np.zeros((50, 50), dtype=bool)
    inside[5:20, 10:40] = True
    roi = Roi.of(inside)
    assert (roi.box, roi.mask) == ((10, 5, 40, 20), None)
    shown = Geometry(30, "resize", roi).counted  # a square around it, at the image's upper edge
    assert shown is not None
    assert (shown.any(axis=1).sum(), shown.any(axis=0).sum()) == (15, 30)
    inside[5:35, 10:40] = True
    assert Geometry(30, "resize", Roi.of(inside)).counted is None
    assert roi.described() == {"frame": [50, 50], "box": [10, 5, 30, 15], "share": 1.0}


@pytest.mark.parametrize("size", [(120, 80), (240, 160), (80, 120)])
@pytest.mark.parametrize("fit", ["resize", "crop"])
def test_what_is_read_has_the_shape_of_the_image_and_holds_the_region(
    size: tuple[int, int], fit
) -> None:
    width, height = size
    for box in ((0, 0, 30, 8), (width - 9, 0, width, height), (50, 20, 60, 60), (0, 5, width, 9)):
        roi = Roi(size, box)
        left, upper, right, lower = roi.crop_in(size, fit == "crop")
        assert (0 <= left <= box[0], 0 <= upper <= box[1]) == (True, True)
        assert (box[2] <= right <= width or fit == "crop", lower <= height) == (True, True)
        shape = 1 if fit == "crop" else width / height
        if (right - left, lower - upper) not in ((width, lower - upper), (right - left, height)):
            assert abs((right - left) - shape * (lower - upper)) <= 2


def test_a_thin_or_huge_mask_is_kept_small_and_never_empty() -> None:
    inside = np.zeros((1200, 3000), dtype=bool)
    inside[np.arange(1200), np.arange(1200) * 2] = True
    roi = Roi.of(inside)
    assert max(roi.pixels.shape) <= 512
    counted = Geometry(64, "resize", roi).counted
    assert counted is not None
    assert counted.any(axis=1).mean() > 0.9


def test_it_survives_a_header() -> None:
    inside = disc(60, 40)
    geometry = Geometry(32, "letterbox", Roi.of(inside))
    again = read_as(Geometry, json.loads(json.dumps(asdict(geometry))))
    assert again == geometry
    np.testing.assert_array_equal(again.counted, geometry.counted)
    assert read_as(Geometry, {"side": 32, "fit": "crop"}) == Geometry(32, "crop")


@pytest.mark.parametrize(
    "told",
    [
        {"box": (10, 10, 5, 20)},
        {"box": (0, 0, 61, 20)},
        {"mask": "AAAA", "mask_size": (4, 4)},  # nothing in it counts
        {"mask": "////", "mask_size": (4000, 4000)},
        {"mask": "////", "mask_size": (9, 9)},  # shorter than it says
        {"mask": "////", "mask_size": None},
        {"mask": "not base64!", "mask_size": (2, 2)},
    ],
)
def test_what_no_file_should_say_is_refused(told: dict) -> None:
    with pytest.raises(ValueError, match=r"region|reshape|base64|Only"):
        Roi(**{"frame": (60, 40), "box": (0, 0, 60, 40), **told})


def test_another_aspect_ratio_is_refused_and_a_small_part_too() -> None:
    inside = np.zeros((80, 120), dtype=bool)
    inside[10:20, 30:100] = True
    geometry = Geometry(64, "resize", Roi.of(inside))
    geometry.check("a.png", (240, 160), 8)
    with pytest.raises(UserError, match=r"b\.png: 120x120 pixels have another aspect.* 120x80"):
        geometry.check("b.png", (120, 120), 8)
    with pytest.raises(UserError, match=r"c\.png: 8x6 pixels in the region of interest"):
        geometry.check("c.png", (15, 10), 8)
