"""What people have, and what is wrong with it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from igd.data.dataset import Dataset
from igd.data.geometry import Geometry
from igd.data.image_set import check_one_size, decode
from igd.data.sample import Sample
from igd.data.sources import as_source
from igd.data.store import PixelFile
from igd.errors import UserError
from igd.progress import Progress

IMAGES = np.random.default_rng(0).integers(0, 255, (4, 20, 30, 3), dtype=np.uint8)


def write(folder: Path, images: np.ndarray = IMAGES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number}.png")
    return folder


def test_folder_list_and_array_give_the_same_pixels(tmp_path: Path) -> None:
    folder = write(tmp_path / "good")
    given = [folder, str(folder), sorted(folder.iterdir()), IMAGES, list(IMAGES), IMAGES / 255.0]
    decoded = [decode(as_source(each), Geometry(32), progress=Progress()) for each in given]
    for images in decoded:
        assert images.pixels.shape == (4, 3, 32, 32)
        assert images.sizes == [(30, 20)] * 4
        assert (images.pixels == decoded[0].pixels).all()


def test_grey_arrays_have_one_channel() -> None:
    images = decode(as_source(IMAGES[..., 0]), Geometry(32), progress=Progress())
    assert images.pixels.shape == (4, 1, 32, 32)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (np.zeros(9), "reshape your data"),
        (np.zeros((4, 9, 9, 5)), "is not"),
        (np.full((4, 9, 9), 300.0), "between 0 and 1"),
        (np.full((4, 9, 9), np.nan), "NaN"),
        (np.zeros((4, 9, 9), dtype=np.int64), "ambiguous"),
        ([np.zeros((9, 9)), np.zeros((9, 9, 3))], "grey and colour"),
        (42, "give a folder"),
    ],
)
def test_arrays_that_are_not_images(wrong, says: str) -> None:
    with pytest.raises(UserError, match=says):
        decode(as_source(wrong), Geometry(32), progress=Progress())


def test_an_unreadable_image_is_left_out_or_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "good")
    (folder / "1.png").write_bytes((folder / "1.png").read_bytes()[:200])
    images = decode(as_source(folder), Geometry(32), progress=Progress())
    assert [Path(name).name for name in images.names] == ["0.png", "2.png", "3.png"]
    assert "1.png" in images.skipped[0]
    with pytest.raises(UserError, match=r"1\.png"):
        decode(as_source(folder), Geometry(32), strict=True, progress=Progress())


def test_different_sizes_are_named() -> None:
    source = as_source([IMAGES[0], IMAGES[1], IMAGES[2, :10]])
    with pytest.raises(UserError, match=r"2 are 30x20, but 2 is 30x10.*letterbox"):
        check_one_size(decode(source, Geometry(32), progress=Progress()), source)


def test_a_data_set_gives_its_training_images() -> None:
    samples = [
        Sample(f"{split} {n}", IMAGES[n], split=split)
        for split in ("train", "test")
        for n in range(2)
    ]
    source = as_source(Dataset("parts", samples, "parts.npz"))
    assert (source.names, source.described, source.protocols) == (
        ["train 0", "train 1"],
        "parts.npz",
        [],
    )
    assert as_source(samples).names == ["train 0", "train 1", "test 0", "test 1"]


def test_pixels_are_the_same_in_memory_and_in_a_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "good")
    (folder / "1.png").write_text("text")
    held, filed = (
        decode(as_source(folder), Geometry(32), progress=Progress(), held=size)
        for size in (2**20, 0)
    )
    assert isinstance(held.pixels, torch.Tensor)
    assert isinstance(filed.pixels, PixelFile)
    assert filed.names == held.names
    every = torch.arange(3)
    assert torch.equal(filed.pixels[every], held.pixels[every])
    part = filed.subset(torch.tensor([2, 0]))
    assert part.names == [held.names[2], held.names[0]]
    assert torch.equal(part.pixels[torch.tensor([1])], held.pixels[:1])


def test_every_source_says_how_many_pixels_come(tmp_path: Path) -> None:
    image = np.zeros((20, 30, 3), np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    for images in (
        tmp_path,
        [tmp_path / "a.png"],
        image[None],
        [Sample("a", tmp_path / "a.png")],
        [Sample("a", image)],
    ):
        assert as_source(images).pixels(0) == 600


def test_an_image_of_an_array_has_a_largest_size() -> None:
    large = np.broadcast_to(np.uint8(0), (1, 10_001, 10_000))
    with pytest.raises(UserError, match="10000x10001 pixels"):
        as_source(large)
