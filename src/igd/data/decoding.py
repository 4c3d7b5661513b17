"""Image files: finding them, and decoding each into 8-bit RGB pixels or a clear error."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from igd.data import decoder_messages
from igd.data.frames import CLIPS, Frame, frame_of, images_in, is_clip
from igd.data.integrity import check_opened, checked
from igd.errors import UserError

DICOM = (".dcm", ".dicom")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", *DICOM)
# Pixels; a picture that claims more is more likely an attack than a photograph.
LARGEST = 100_000_000
LARGEST_FILE = 1_000_000_000  # bytes
FORMATS = ("BMP", "JPEG", "PNG", "TIFF", "WEBP")  # Pillow's names of what these suffixes hold
# Of scanners and cameras: values, not colours.
NOT_PICTURES = (
    ".nii",
    ".mha",
    ".nrrd",
    ".npy",
    ".raw",
)
# What a decoded image that had more than 8 bits says in its `info`.
DEEP = "share of the range used"
# What it was before it became RGB: Pillow's mode, its pages, and whether it is transparent.
MODE, PAGES, TRANSPARENT = "mode of the file", "pages of the file", "transparent"

OPAQUE = (255, 255)  # lowest and highest value of a channel in which nothing is transparent

Image.MAX_IMAGE_PIXELS = LARGEST
decoder_messages.silence()


class UnreadableImage(UserError):
    """A file that is called an image and can't be decoded as one."""


class TooManyPixels(UnreadableImage):
    """An image that claims to be larger than is accepted; it was not decoded."""


def find_images(folder: Path) -> list[Path]:
    """Every image in a folder and the folders in it, in a stable order; of a TIFF, every page."""
    if frame_of(folder):
        return [folder]
    return [image for path in find_files(folder) for image in images_in(path)]


def find_frames(folder: Path, every: int = 1) -> list[Path]:
    """The same, and one in `every` frames of clips."""
    if folder.is_file() or frame_of(folder):
        return images_in(folder, every)
    return [image for path in find_files(folder, CLIPS) for image in images_in(path, every)]


def find_files(folder: Path, more: tuple[str, ...] = ()) -> list[Path]:
    """Every image file in a folder, and files of other suffixes."""
    if not folder.exists():
        raise UserError(f"{folder}: no such folder")
    if folder.is_file():
        return [folder]
    suffixes, there = (*SUFFIXES, *more), sorted(files_below(folder))
    found = [path for path in there if path.suffix.lower() in suffixes and path.is_file()]
    if not found:
        others = Counter(
            path.suffix.lower() for path in there if path.suffix.lower() in NOT_PICTURES
        )
        way_out = "is this the folder with the pictures?"
        if others:
            (suffix, count), *_ = others.most_common(1)
            way_out = (
                f"of {count} {suffix} files, choose which values become black and white, and save "
                "them as PNG first"
            )
        raise UserError(f"{folder}: no images found (looked for {' '.join(suffixes)}); {way_out}")
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """What is in a folder and the folders in it, but for these; one that can't be read is no empty
    one, but for what the file system keeps for itself.
    """

    def refuse(error: OSError) -> None:
        if Path(error.filename).name != "lost+found" and not isinstance(error, FileNotFoundError):
            raise UserError(f"{error.filename}: can't be read ({error.strerror})") from None

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in names)


def read_image(path: str | Path) -> Image.Image:
    """Decode a file to 8-bit RGB, upright as its EXIF tag says."""
    if Path(path).suffix.lower() in DICOM:
        from igd.data.formats.dicom import read_dicom

        return read_dicom(Path(path))
    frame = frame_of(Path(path))
    if is_clip(Path(path)):
        frame = Frame(Path(path), 0)  # of a damaged clip: reading says what is wrong with it
    if frame and is_clip(frame.file):
        from igd.data.formats.video import read_frame

        return read_frame(frame)
    if frame:
        return decode_image(frame.file, str(path), LARGEST, page=frame.number)
    return decode_image(Path(path), str(path), LARGEST)


def decode_image(
    file: Path | BinaryIO,
    name: str,
    largest: int,
    formats: tuple[str, ...] | None = None,
    page: int | None = None,
) -> Image.Image:
    """The same from an open file too; `formats` limits what strangers may send to decoders that are
    made for photographs. Without a `page`, the first is read, and `info` says how many there are.
    """
    try:
        contents = _contents(file, name)
        first, *others = checked(contents)
        decoded = _decoded(first, contents, name, largest, formats, page)
        for other in others:
            again = _decoded(other, contents, name, largest, formats, page)
            if again.tobytes() != decoded.tobytes():
                raise UnreadableImage(f"{name}: can't be decoded (its data end too early)")
        return decoded
    except (UserError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise UnreadableImage(f"{name}: not an image, whatever its name says") from None
    except Image.DecompressionBombError:
        raise TooManyPixels(f"{name}: more than {largest:,} pixels") from None
    except Exception as error:  # for damaged files, decoders raise whatever they stumble over
        reason = str(error) or type(error).__name__
        raise UnreadableImage(f"{name}: can't be decoded ({reason})") from None


def _contents(file: Path | BinaryIO, name: str) -> bytes:
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return _contents(opened, name)
    contents = file.read(LARGEST_FILE + 1)
    if len(contents) > LARGEST_FILE:
        raise UnreadableImage(f"{name}: a file of more than {LARGEST_FILE:,} bytes")
    return contents


def _decoded(
    decodable: bytes,
    contents: bytes,
    name: str,
    largest: int,
    formats: tuple[str, ...] | None,
    page: int | None,
) -> Image.Image:
    with Image.open(io.BytesIO(decodable), formats=formats) as opened:
        if opened.width * opened.height > largest:
            raise TooManyPixels(
                f"{name}: {opened.width}x{opened.height} pixels are more than {largest:,}"
            )
        if page:
            opened.seek(page)
        check_opened(opened, contents)
        pages = getattr(opened, "n_frames", 1)
        opened.seek(page or 0)
        decoded = to_rgb(ImageOps.exif_transpose(opened))
        decoded.info[PAGES] = pages if page is None else 1
        return decoded


def claimed_pixels(file: Path | BinaryIO, formats: tuple[str, ...] | None = None) -> int:
    """How many pixels a file says it has, from its header; 0 where that can't be read."""
    frame = frame_of(file) if isinstance(file, Path) else None
    if frame and is_clip(frame.file):
        from igd.data.formats.video import frame_pixels

        return frame_pixels(frame)
    file = frame.file if frame else file
    try:
        with Image.open(file, formats=formats) as opened:
            return opened.width * opened.height
    except Image.DecompressionBombError:
        return 2 * LARGEST
    except Exception:  # decoding will say what is wrong with it
        return 0


def to_rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB of any mode. What a value means depends on the file's type, never on the other
    pixels of the image.
    """
    deep = image.mode.startswith("I") or image.mode == "F"
    converted = _of_any_depth(image)
    converted.info[MODE] = "L" if deep else image.mode
    if image.has_transparency_data:
        converted.info[TRANSPARENT] = image.convert("RGBA").getchannel("A").getextrema() != OPAQUE
    return converted


def _of_any_depth(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # I;16, or I: what older versions of Pillow make of a 16-bit PNG
        return _scaled(image, 65535)
    if image.mode == "F":
        return _scaled(image, 1)
    return image.convert("RGB")


def _scaled(image: Image.Image, white: float) -> Image.Image:
    pixels = np.asarray(image, dtype=np.float64)
    if not (
        np.isfinite(pixels).all() and pixels.min(initial=0) >= 0 and pixels.max(initial=0) <= white
    ):
        raise ValueError(
            f"its values go from {pixels.min():g} to {pixels.max():g}, and between 0 and "
            f"{white:g} is understood; "
            "choose which become black and white, and save it with 8 bits first"
        )
    shallow = Image.fromarray((pixels * (255 / white)).round().astype(np.uint8)).convert("RGB")
    shallow.info[DEEP] = float(pixels.max(initial=0)) / white
    return shallow
