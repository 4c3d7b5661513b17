"""A TIFF of several pages: each is an image, unless pages are not of one kind."""

from pathlib import Path

import numpy as np
import pytest
from clips import write_stack
from conftest import stripes, write_images
from PIL import Image

from igd.data.decoding import PAGES, UnreadableImage, find_files, find_images, read_image
from igd.data.formats.folders import read_folder
from igd.data.frames import frame_of
from igd.data.sources import as_source


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "jpeg"])
def test_every_page_is_an_image(tmp_path: Path, compression: str | None) -> None:
    pages = [np.full((20, 24), 40 * number, np.uint8) for number in range(5)]
    stack = write_stack(tmp_path / "stack.tif", pages, compression=compression)
    found = find_images(tmp_path)
    assert [path.name for path in found] == [f"stack.tif#{n:06d}" for n in range(5)]
    images = [read_image(path) for path in found]
    assert [int(np.asarray(image)[0, 0, 0]) for image in images] == [0, 40, 80, 120, 160]
    assert {image.info[PAGES] for image in images} == {1}
    assert find_files(tmp_path) == [stack]
    assert len(as_source(stack)) == 5
    with pytest.raises(UnreadableImage):
        read_image(f"{stack}#000005")


def test_pages_of_several_sizes_are_one_image_that_says_so(tmp_path: Path) -> None:
    pages = [np.zeros((side, side), np.uint8) for side in (32, 16)]
    stack = write_stack(tmp_path / "pyramid.tif", pages)
    assert find_images(tmp_path) == [stack]
    assert read_image(stack).info[PAGES] == 2


def test_smaller_copies_are_no_pages(tmp_path: Path) -> None:
    """A thumbnail behind the picture, as cameras and scanners write it."""
    from PIL.TiffImagePlugin import AppendingTiffWriter

    with AppendingTiffWriter(str(tmp_path / "photo.tif"), True) as file:
        for side, kind in ((32, 0), (32, 0), (8, 1)):
            Image.new("L", (side, side)).save(file, "TIFF", tiffinfo={254: kind})
            file.newFrame()
    assert len(find_images(tmp_path)) == 2


def test_one_page_and_other_formats_keep_their_names(tmp_path: Path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "one.tif")
    (tmp_path / "broken.tif").write_bytes(b"II*\0")
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    names = [path.name for path in find_images(tmp_path)]
    assert names == ["a.png", "broken.tif", "one.tif"]


def test_a_file_that_is_called_so_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stack.tif#000001"
    assert frame_of(path) is not None
    path.write_bytes(b"")
    assert frame_of(path) is None


def test_pages_have_masks_of_their_own(tmp_path: Path) -> None:
    write_images(tmp_path / "test" / "good", stripes(2))
    (tmp_path / "test" / "spot").mkdir()
    write_stack(tmp_path / "test" / "spot" / "stack.tif", list(stripes(2)))
    (tmp_path / "ground_truth" / "spot").mkdir(parents=True)
    Image.new("L", (32, 32), 255).save(tmp_path / "ground_truth/spot/stack#000001_mask.png")
    masks = [sample.mask for sample in read_folder(tmp_path).samples if sample.label]
    assert [mask and mask.name for mask in masks] == [None, "stack#000001_mask.png"]
