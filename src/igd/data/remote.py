"""Images that lie elsewhere, by address: whatever fsspec opens, such as s3://bucket/parts."""

from __future__ import annotations

import io
import time
from pathlib import PurePosixPath
from typing import Any

from PIL import Image

from igd.data.decoding import DICOM, LARGEST, LARGEST_FILE, SUFFIXES, UnreadableImage, decode_image
from igd.errors import UserError

ATTEMPTS = 3  # to fetch an image; storage that is asked a million times fails now and then
PAUSE = 0.5  # seconds before the second attempt; twice as long before each further one
FINAL = (FileNotFoundError, PermissionError, IsADirectoryError)  # another attempt changes nothing


def is_address(name: Any) -> bool:
    """Whether this is the address of something, and not a path."""
    return isinstance(name, str) and "://" in name


def find_remote_images(address: str) -> list[str]:
    """The addresses of every image in a folder and the folders in it, in a stable order."""
    storage, path = _opened(address)
    try:
        found = [path] if storage.isfile(path) else storage.find(path)
    except FINAL as error:
        raise UserError(f"{address}: can't be listed ({_reason(error)})") from None
    except Exception as error:  # every kind of storage has its own
        raise UserError(
            f"{address}: can't be listed ({_reason(error)}); are the address and the credentials "
            f"right?"
        ) from None
    images = sorted(each for each in found if PurePosixPath(each).suffix.lower() in SUFFIXES)
    if not images:
        raise UserError(
            f"{address}: no images found (looked for {' '.join(SUFFIXES)}); is this the folder "
            f"with the pictures?"
        )
    return [storage.unstrip_protocol(each) for each in images]


def read_remote_image(address: str) -> Image.Image:
    """Fetch an image and decode it; storage gets a few attempts."""
    for attempt in range(ATTEMPTS):
        try:
            storage, path = _opened(address)
            contents = io.BytesIO(storage.cat_file(path, start=0, end=LARGEST_FILE + 1))
        except UserError:
            raise
        except Exception as error:
            if attempt == ATTEMPTS - 1 or isinstance(error, FINAL):
                raise UnreadableImage(f"{address}: can't be read ({_reason(error)})") from None
            time.sleep(PAUSE * 2**attempt)
            continue
        break
    if PurePosixPath(path).suffix.lower() in DICOM:
        from igd.data.formats.dicom import read_dicom

        return read_dicom(contents, name=address)
    return decode_image(contents, address, LARGEST)


def _opened(address: str) -> tuple[Any, str]:
    """The storage of an address, which fsspec keeps open, and the path there."""
    protocol = address.partition("://")[0]
    try:
        import fsspec
    except ModuleNotFoundError:
        raise UserError(
            f"{address}: an address needs the package fsspec, which is not installed; pip install "
            f"fsspec"
        ) from None
    try:
        return fsspec.core.url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise UserError(
            f"{address}: {protocol}:// needs a package that is not installed ({_reason(error)})"
        ) from None
    except ValueError as error:
        raise UserError(f"{address}: not an address that can be read ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
