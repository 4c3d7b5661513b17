"""Decoding: every mode becomes 8-bit RGB, and what is not an image says so."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes, write_images
from PIL import Image

from igd.cpu import in_parallel
from igd.data.decoding import UnreadableImage, find_images, read_image
from igd.errors import UserError

GRADIENT = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (20, 1))


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "webp"])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P"])
def test_formats_and_modes(tmp_path: Path, suffix: str, mode: str) -> None:
    path = tmp_path / f"image.{suffix}"
    image = Image.fromarray(GRADIENT).convert(mode)
    image.save(path, **({"lossless": True} if suffix == "webp" else {}))
    decoded = read_image(path)
    assert (decoded.mode, decoded.size) == ("RGB", (32, 20))
    np.testing.assert_allclose(np.asarray(decoded)[:, :, 0], GRADIENT, atol=1)


def test_sixteen_bit_greys_are_scaled_not_clipped(tmp_path: Path) -> None:
    path = tmp_path / "image.tif"
    Image.fromarray(GRADIENT.astype(np.uint16) * 257).save(path)
    np.testing.assert_allclose(np.asarray(read_image(path))[:, :, 1], GRADIENT, atol=1)


def test_what_a_value_means_does_not_depend_on_the_other_pixels(tmp_path: Path) -> None:
    path = tmp_path / "dark.tif"
    Image.fromarray(np.full((20, 20), 200, dtype=np.uint16)).save(path)
    assert np.asarray(read_image(path)).max() == 1
    Image.fromarray(GRADIENT.astype(np.float32) / 255).save(path)
    np.testing.assert_allclose(np.asarray(read_image(path))[:, :, 0], GRADIENT, atol=1)
    for wrong in (GRADIENT.astype(np.float32), np.full((20, 20), np.nan, dtype=np.float32)):
        Image.fromarray(wrong).save(path)
        with pytest.raises(UnreadableImage, match="between 0 and 1"):
            read_image(path)
    Image.fromarray(np.full((20, 20), -812, dtype=np.int32)).save(path)
    with pytest.raises(
        UnreadableImage, match="from -812 to -812, and between 0 and 65535 is understood; choose"
    ):
        read_image(path)


def test_exif_orientation(tmp_path: Path) -> None:
    path = tmp_path / "image.jpg"
    image = Image.new("RGB", (40, 20))
    exif = image.getexif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    image.save(path, exif=exif)
    assert read_image(path).size == (20, 40)


def test_truncated_text_empty_and_huge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = tmp_path / "good.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)).save(good)
    (tmp_path / "truncated.png").write_bytes(good.read_bytes()[:-2000])
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "empty.png").touch()
    for name in ("truncated", "text", "empty"):
        with pytest.raises(UnreadableImage, match=f"{name}.png"):
            read_image(tmp_path / f"{name}.png")
    monkeypatch.setattr("igd.data.decoding.LARGEST", 1000)
    with pytest.raises(UnreadableImage, match="more than 1,000"):
        read_image(good)


def test_finding(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        find_images(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is this the folder with the pictures"):
        find_images(tmp_path)
    for name in ("b.PNG", "a.jpg", "c.txt", "deeper/d.webp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in find_images(tmp_path)] == ["a.jpg", "b.PNG", "d.webp"]


def test_a_folder_of_scans_says_what_to_do(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"IM{number}.nii").touch()
    with pytest.raises(
        UserError, match=r"of 3 \.nii files, choose which values become black and white"
    ):
        find_images(tmp_path)


def test_parallel_results_come_in_order() -> None:
    assert list(in_parallel(lambda n: n * n, range(100))) == [n * n for n in range(100)]


def test_a_folder_that_can_not_be_read_is_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path, stripes(1))
    (tmp_path / "locked").mkdir()
    scandir = os.scandir

    def locked(path: str | Path) -> object:
        if Path(path).name in ("locked", "lost+found"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", locked)  # root may read anything
    with pytest.raises(UserError, match=r"locked: can't be read \(Permission denied\)"):
        find_images(tmp_path)
    (tmp_path / "locked").rename(tmp_path / "lost+found")  # as on every disk of its own
    assert len(find_images(tmp_path)) == 1
