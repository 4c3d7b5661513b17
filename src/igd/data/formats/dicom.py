"""DICOM files as pictures: measured values through the window that the file names.

The extra `dicom` brings pydicom. What is black and what is white is the file's own say (rescale,
then its first window or look-up table), never the other pixels of the image; a file without a
window is read over the whole range that its bits can hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.decoding import LARGEST, MODE, PAGES, TooManyPixels, UnreadableImage
from igd.errors import UserError

WAY_OUT = "pip install 'igd-anomaly[dicom]' brings it"


def read_dicom(
    file: Path | BinaryIO, window: tuple[float, float] | None = None, name: str | None = None
) -> Image.Image:
    """The first frame of a file in 8-bit RGB; `window` is a centre and a width to use in place of
    the file's. An open file has a `name` for error messages.
    """
    path = name or file
    try:
        import pydicom
    except ModuleNotFoundError:
        raise UserError(
            f"{path}: a DICOM file needs the package pydicom, which is not installed; {WAY_OUT}"
        ) from None
    try:
        dataset = pydicom.dcmread(file)
        claimed = int(dataset.Rows) * int(dataset.Columns)
        if claimed > LARGEST:
            raise TooManyPixels(f"{path}: {claimed:,} pixels are more than {LARGEST:,}")
        return _image(dataset, window)
    except (UserError, MemoryError):
        raise
    except Exception as error:  # for damaged files, readers raise whatever they stumble over
        reason = str(error) or type(error).__name__
        raise UnreadableImage(f"{path}: can't be decoded as DICOM ({reason})") from None


def _image(dataset: Any, window: tuple[float, float] | None) -> Image.Image:
    frames = int(dataset.get("NumberOfFrames", 1) or 1)
    pixels = dataset.pixel_array
    first = pixels[0] if frames > 1 else pixels
    if first.ndim == 3:
        from pydicom.pixels.processing import convert_color_space

        space = str(dataset.PhotometricInterpretation)
        colours = first if space == "RGB" else convert_color_space(first, space, "RGB")
        image, mode = Image.fromarray(colours.astype(np.uint8)), "RGB"
    else:
        image, mode = Image.fromarray(_windowed(dataset, first, window)).convert("RGB"), "L"
    image.info |= {MODE: mode, PAGES: frames}
    return image


def _windowed(
    dataset: Any, stored: NDArray[Any], window: tuple[float, float] | None
) -> NDArray[np.uint8]:
    """Stored values as 8-bit grey levels; of MONOCHROME1, in which the lowest is white, turned
    round.
    """
    from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut

    values = np.asarray(apply_modality_lut(stored, dataset), dtype=np.float64)
    if window is None and "VOILUTSequence" in dataset:
        table = dataset.VOILUTSequence[0].LUTDescriptor
        values = np.asarray(apply_voi_lut(values.astype(stored.dtype), dataset), dtype=np.float64)
        black, white = 0.0, float(2 ** int(table[2]) - 1)
    else:
        black, white = _limits(dataset, window)
    grey = np.clip((values - black) / max(white - black, 1e-9), 0, 1)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        grey = 1 - grey
    return (255 * grey).round().astype(np.uint8)


def _limits(dataset: Any, window: tuple[float, float] | None) -> tuple[float, float]:
    """The values that become black and white: PS3.3 C.11.2.1.2, linear."""
    if window is None and "WindowCenter" in dataset and "WindowWidth" in dataset:
        window = _first(dataset.WindowCenter), _first(dataset.WindowWidth)
    if window is not None:
        centre, width = window
        if width < 1:
            raise ValueError(f"a window of width {width:g}")
        return centre - 0.5 - (width - 1) / 2, centre - 0.5 + (width - 1) / 2
    bits, signed = int(dataset.BitsStored), bool(dataset.PixelRepresentation)
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    slope = float(dataset.get("RescaleSlope", 1))
    intercept = float(dataset.get("RescaleIntercept", 0))
    return lowest * slope + intercept, highest * slope + intercept


def _first(value: Any) -> float:
    """A file may name several windows; the first one is meant to be used."""
    return float(value if isinstance(value, str | int | float) else next(iter(value)))
