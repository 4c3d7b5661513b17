"""Image files: finding them, and decoding each into 8-bit RGB pixels or a clear error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from igd.errors import UserError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
LARGEST = 100_000_000  # pixels; a picture that claims more is more likely an attack than a photograph
FORMATS = ("BMP", "JPEG", "PNG", "TIFF", "WEBP")  # Pillow's names of what these suffixes hold
NOT_PICTURES = (".dcm", ".dicom", ".nii", ".mha", ".nrrd", ".npy", ".raw")  # of scanners and cameras: values, not colours
DEEP = "share of the range used"  # what a decoded image that had more than 8 bits says in its `info`
DECODERS = 4  # threads; Pillow decodes outside the interpreter's lock

Image.MAX_IMAGE_PIXELS = LARGEST
Item = TypeVar("Item")
Result = TypeVar("Result")


class UnreadableImage(UserError):
    """A file that is called an image and can't be decoded as one."""


class TooManyPixels(UnreadableImage):
    """An image that claims to be larger than is accepted; it was not decoded."""


def find_images(folder: Path) -> list[Path]:
    """Every image file in a folder and the folders in it, in a stable order."""
    if not folder.exists():
        raise UserError(f"{folder}: no such folder")
    if folder.is_file():
        return [folder]
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not found:
        others = Counter(path.suffix.lower() for path in folder.rglob("*") if path.suffix.lower() in NOT_PICTURES)
        way_out = "is this the folder with the pictures?"
        if others:
            (suffix, count), *_ = others.most_common(1)
            way_out = f"of {count} {suffix} files, choose which values become black and white, and save them as PNG first"
        raise UserError(f"{folder}: no images found (looked for {' '.join(SUFFIXES)}); {way_out}")
    return found


def read_image(path: Path) -> Image.Image:
    """Decode a file to 8-bit RGB, upright as its EXIF tag says."""
    return decode_image(path, str(path), LARGEST)


def decode_image(file: Path | BinaryIO, name: str, largest: int, formats: tuple[str, ...] | None = None) -> Image.Image:
    """The same from an open file too; `formats` limits what strangers may send to decoders that are made for photographs."""
    try:
        with Image.open(file, formats=formats) as opened:
            if opened.width * opened.height > largest:
                raise TooManyPixels(f"{name}: {opened.width}x{opened.height} pixels are more than {largest:,}")
            return to_rgb(ImageOps.exif_transpose(opened))
    except UnidentifiedImageError:
        raise UnreadableImage(f"{name}: not an image, whatever its name says") from None
    except Image.DecompressionBombError:
        raise TooManyPixels(f"{name}: more than {largest:,} pixels") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # Pillow raises all of these for damaged files
        if isinstance(error, UserError):
            raise
        raise UnreadableImage(f"{name}: can't be decoded ({error})") from None


def to_rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB of any mode. What a value means depends on the file's type, never on the other pixels of the image."""
    if image.mode.startswith("I"):  # I;16, or I: what older versions of Pillow make of a 16-bit PNG
        return _scaled(image, 65535)
    if image.mode == "F":
        return _scaled(image, 1)
    return image.convert("RGB")


def _scaled(image: Image.Image, white: float) -> Image.Image:
    pixels = np.asarray(image, dtype=np.float64)
    if not (np.isfinite(pixels).all() and pixels.min(initial=0) >= 0 and pixels.max(initial=0) <= white):
        raise ValueError(
            f"its values go from {pixels.min():g} to {pixels.max():g}, and between 0 and {white:g} is understood; "
            "choose which become black and white, and save it with 8 bits first"
        )
    shallow = Image.fromarray((pixels * (255 / white)).round().astype(np.uint8)).convert("RGB")
    shallow.info[DEEP] = float(pixels.max(initial=0)) / white
    return shallow


def in_parallel(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Apply `function` to each item in a few threads; results come in order, and only a few are held at once."""
    with ThreadPoolExecutor(DECODERS) as pool:
        ahead = 4 * DECODERS
        waiting = [pool.submit(function, item) for item in items[:ahead]]
        for index in range(len(items)):
            yield waiting[index % ahead].result()
            if index + ahead < len(items):
                waiting[index % ahead] = pool.submit(function, items[index + ahead])
