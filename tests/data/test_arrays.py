"""Whatever programs hold images in gives the same pixels; what can be read in two ways is
refused.
"""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

from igd.data.sources import Source, as_source
from igd.errors import UserError

IMAGES = np.random.default_rng(0).integers(0, 255, (5, 20, 30, 3), dtype=np.uint8)
TENSORS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)
PICTURES = [Image.fromarray(image) for image in IMAGES]


def encoded(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return buffer.getvalue()


def pixels(source: Source) -> list[np.ndarray]:
    return [np.asarray(source.read(number)) for number in range(len(source))]


LOADER = DataLoader(TensorDataset(TENSORS, torch.zeros(5)), batch_size=2)
SEVERAL = {
    "NHWC": IMAGES,
    "NCHW": np.moveaxis(IMAGES, 3, 1),
    "tensor": TENSORS,
    "floats": TENSORS / 255,
    "list of CHW": list(TENSORS),
    "PIL": PICTURES,
    "bytes": [encoded(image) for image in IMAGES],
    "files": [io.BytesIO(encoded(image)) for image in IMAGES],
    "loader": LOADER,
    "mappings": [{"image": batch, "path": "x"} for batch, _ in LOADER],
    "RGBA": np.concatenate([IMAGES, np.full((5, 20, 30, 1), 255, np.uint8)], axis=3),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_images(kind: str) -> None:
    source = as_source(SEVERAL[kind])
    assert not source.single
    np.testing.assert_array_equal(pixels(source), IMAGES)


def test_generators() -> None:
    for items in ((image for image in IMAGES), (Image.fromarray(image) for image in IMAGES)):
        np.testing.assert_array_equal(pixels(as_source(items)), IMAGES)


@pytest.mark.parametrize(
    "one",
    [
        IMAGES[0],
        TENSORS[0],
        PICTURES[0],
        PICTURES[0].convert("RGBA"),
        np.dstack([IMAGES[0], np.full((20, 30), 255, np.uint8)]),
        encoded(IMAGES[0]),
    ],
)
def test_one_image(one: object) -> None:
    source = as_source(one)
    assert source.single
    assert len(source) == 1
    np.testing.assert_array_equal(pixels(source)[0], IMAGES[0])


def test_an_open_file_is_called_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "part.png"
    path.write_bytes(encoded(IMAGES[0]))
    with path.open("rb") as file:
        source = as_source(file)
    assert source.names == [str(path)]
    np.testing.assert_array_equal(pixels(source)[0], IMAGES[0])
    with path.open(encoding="latin-1") as text, pytest.raises(UserError, match="binary mode"):
        as_source(text).read(0)


@pytest.mark.parametrize(("images", "count"), [(IMAGES[..., 0], 5), (TENSORS[:, 0], 5)])
def test_grey_images_stay_grey(images: object, count: int) -> None:
    source = as_source(images)
    assert len(source) == count
    assert source.read(0).mode == "L"


def test_16_bit_pictures_are_read_as_their_files_are() -> None:
    deep = Image.fromarray(np.full((9, 9), 257 * 100, dtype=np.uint16))
    assert as_source(deep).read(0).getpixel((0, 0)) == (100, 100, 100)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            np.zeros((3, 96, 96)),
            r"in colour, channels first, or 3 grey images; give \(96",
        ),
        (np.zeros((2, 3, 9, 3)), "channels first or last"),
        (np.zeros((96, 96, 2, 5)), "is not"),
        (TENSORS / 255 * 4 - 2, "undo a normalisation"),
        ([PICTURES[0], "part.png"], "list of Image and str can't be read"),
        ({"image": IMAGES}, "type dict"),
    ],
)
def test_what_can_be_read_in_two_ways_or_in_none(wrong: object, says: str) -> None:
    with pytest.raises(UserError, match=says):
        as_source(wrong).read(0)
