"""Damaged files are refused; whole ones decode to the same pixels as ever, at the same speed."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd.data.decoding import LARGEST, UnreadableImage, decode_image, read_image
from igd.data.integrity import EMPTY_TAIL, checked

CUTS = np.linspace(0.3, 0.995, 24)
JPEGS = [
    {},
    {"quality": 95, "subsampling": 0},
    {"quality": 20},
    {"restart_marker_rows": 1},
    {"optimize": True},
    {"progressive": True},
    {"progressive": True, "quality": 95},
]


def scene(height: int = 240, width: int = 321, seed: int = 0) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([128 + 80 * np.sin(x / 17), 128 + 80 * np.cos(y / 23), (x + y) % 256], -1)
    noisy = waves + np.random.default_rng(seed).normal(0, 8, waves.shape)
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def written(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def decoded(contents: bytes) -> np.ndarray:
    return np.asarray(decode_image(io.BytesIO(contents), "it", LARGEST))


def survivors(files: list[bytes]) -> int:
    count = 0
    for contents in files:
        try:
            decoded(contents)
            count += 1
        except UnreadableImage:
            pass
    return count


@pytest.mark.parametrize("options", JPEGS, ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_whole_jpeg_is_what_it_was(options: dict[str, object], mode: str) -> None:
    for image in (scene(), scene(8, 8), scene(17, 501), Image.new("RGB", (300, 200), (9, 99, 200))):
        contents = written(image.convert(mode), "JPEG", **options)
        plain = np.asarray(Image.open(io.BytesIO(contents)).convert("RGB"))
        assert (decoded(contents) == plain).all()
        assert (decoded(contents + b"something behind it") == plain).all()


def test_an_exif_thumbnail_is_not_the_end() -> None:
    thumbnail = written(scene(60, 80), "JPEG")
    exif = b"Exif\0\0" + b"MM\0*\0\0\0\x08\0\0\0\0\0\0" + thumbnail
    contents = written(scene(), "JPEG", exif=exif)
    assert decoded(contents).shape == (240, 321, 3)


@pytest.mark.parametrize("options", JPEGS, ids=str)
def test_jpegs_cut_and_closed(options: dict[str, object]) -> None:
    contents = written(scene(), "JPEG", **options)
    assert survivors([contents[: int(at * len(contents))] + b"\xff\xd9" for at in CUTS]) == 0


@pytest.mark.parametrize("options", [{}, {"quality": 30}, {"lossless": True}], ids=str)
def test_webps_with_an_empty_tail(options: dict[str, object]) -> None:
    contents = written(scene(), "WEBP", **options)
    for at in CUTS[:-1]:
        left = int(at * len(contents))
        assert len(contents) - left >= EMPTY_TAIL
        assert survivors([contents[:left] + bytes(len(contents) - left)]) == 0
    assert survivors([contents[: int(at * len(contents))] for at in CUTS]) == 0


@pytest.mark.parametrize("value", [0, 128, 255])
@pytest.mark.parametrize("noisy", [0, 0.1, 0.5])
@pytest.mark.parametrize("options", [{"quality": 80}, {"quality": 100}, {"lossless": True}])
def test_flat_webps_are_whole(value: int, noisy: float, options: dict[str, object]) -> None:
    pixels = np.full((800, 900, 3), value, dtype=np.uint8)
    rows = int(noisy * len(pixels))
    pixels[:rows] = np.random.default_rng(0).integers(0, 256, pixels[:rows].shape)
    assert survivors([written(Image.fromarray(pixels), "WEBP", **options)]) == 1


@pytest.mark.parametrize("level", [0, 6])
def test_pngs_with_bad_data(level: int) -> None:
    contents = written(scene(), "PNG", compress_level=level)
    rng = np.random.default_rng(0)
    damaged = []
    for at in rng.integers(33, len(contents) - 12, 200):
        flipped = bytearray(contents)
        flipped[at] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    assert survivors(damaged) == 0
    assert survivors([contents]) == 1


def test_pngs_with_a_wrong_checksum_or_a_bad_end() -> None:
    """What Pillow does not look at: the checksum of the data, and their last bytes."""
    contents = written(scene(), "PNG")
    end = contents.index(b"IEND") - 4
    damaged = []
    for at in (end - 4, end - 1, end - 10, len(contents) - 2):
        flipped = bytearray(contents)
        flipped[at] ^= 4
        damaged.append(bytes(flipped))
    assert survivors(damaged) == 0


def test_pngs_cut_and_closed() -> None:
    """With checksums that agree: data are missing all the same."""
    contents = written(scene(), "PNG")
    data = contents.index(b"IDAT")
    end = b"\0\0\0\0IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    damaged = []
    for share in CUTS:
        kept = b"IDAT" + contents[data + 4 : data + 4 + int(share * 50_000)]
        chunk = struct.pack(">I", len(kept) - 4) + kept + struct.pack(">I", zlib.crc32(kept))
        damaged.append(contents[: data - 4] + chunk + end)
    assert survivors(damaged) == 0


@pytest.mark.parametrize(
    ("kind", "options"),
    [("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("BMP", {})],
    ids=str,
)
def test_what_is_cut_off(kind: str, options: dict[str, object]) -> None:
    contents = written(scene(), kind, **options)
    assert survivors([contents]) == 1
    assert survivors([contents[: int(at * len(contents))] for at in CUTS]) == 0


def test_whatever_a_decoder_raises_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = written(scene(), "PNG")
    for odd in (TypeError("x"), OverflowError(), struct.error("y"), RuntimeError("z")):

        def fail(*_: object, odd: BaseException | type = odd, **__: object) -> None:
            raise odd

        monkeypatch.setattr("igd.data.decoding.to_rgb", fail)
        with pytest.raises(UnreadableImage, match="it: can't be decoded"):
            decoded(contents)


def test_checking_costs_little() -> None:
    """Of what is decoded once: finding the end of a JPEG, summing a PNG."""
    import time

    for kind in ("JPEG", "PNG"):
        contents = written(scene(1000, 1400), kind)
        spent = {}
        for name, work in (
            ("checking", lambda c=contents: checked(c)),
            ("decoding", lambda c=contents: Image.open(io.BytesIO(c)).load()),
        ):
            times = []
            for _ in range(7):
                started = time.perf_counter()
                work()
                times.append(time.perf_counter() - started)
            spent[name] = min(times)
        assert spent["checking"] < 0.1 * spent["decoding"], (kind, spent)


@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"quality": 30}])
def test_a_progressive_jpeg_without_its_last_scans_is_refused(
    tmp_path: Path, options: dict[str, object]
) -> None:
    """Cut between two scans and closed, it is a picture that decodes without an error."""
    path = tmp_path / "x.jpg"
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, progressive=True, **options)
    whole = path.read_bytes()
    read_image(path)
    scans = [at for at in range(len(whole)) if whole[at : at + 2] == b"\xff\xda"]
    assert len(scans) > 4
    for at in scans[1:]:
        path.write_bytes(whole[:at] + b"\xff\xd9")
        with pytest.raises(UnreadableImage, match="its last scans are missing"):
            read_image(path)
