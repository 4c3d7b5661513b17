"""What people have (a folder, a list of files, arrays, a data set) as images to read by number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.dataset import Dataset
from igd.data.decoding import LARGEST, claimed_pixels, find_images, read_image
from igd.data.sample import Sample
from igd.errors import UserError

PIXELS_HELD = 50_000_000  # of originals, decoded ahead or waiting for their batch


@dataclass(frozen=True)
class Source:
    """Images by number: their names, and how to read one."""

    names: list[str]
    read: Callable[[int], Image.Image]
    described: str  # for error messages: 'parts/good', 'the array'
    # What was done to the data set they come from.
    protocols: list[dict[str, Any]] = field(default_factory=list)
    pixels: Callable[[int], int] = lambda _: 0  # how many one has, before it is decoded

    def __len__(self) -> int:
        return len(self.names)


def as_source(images: Any) -> Source:
    """A folder, a file, a list of files, arrays or samples, an array (n, h, w[, 3]), or a data
    set's training images.
    """
    if isinstance(images, Source):
        return images
    if isinstance(images, Dataset):
        return _samples(
            images.training_samples(), images.described, [step.to_json() for step in images.steps]
        )
    if isinstance(images, str | Path):
        return _files(find_images(Path(images)), str(images))
    if isinstance(images, np.ndarray):
        return _arrays(images, "the array")
    if isinstance(images, Iterable):
        listed = list(images)
        if listed and all(isinstance(item, str | Path) for item in listed):
            return _files([Path(item) for item in listed], "the list of files")
        if listed and all(isinstance(item, Sample) for item in listed):
            return _samples(listed, "the list of samples", [])
        if all(isinstance(item, np.ndarray) for item in listed):
            return _arrays(listed, "the list of arrays")
    raise UserError(
        f"images of type {type(images).__name__} can't be read; "
        "give a folder, a list of files, or an array of shape (n, height, width) or (n, height, "
        "width, 3)"
    )


def _files(paths: list[Path], described: str) -> Source:
    return Source(
        [str(path) for path in paths],
        lambda n: read_image(paths[n]),
        described,
        pixels=lambda n: claimed_pixels(paths[n]),
    )


def _samples(samples: list[Sample], described: str, protocols: list[dict[str, Any]]) -> Source:
    return Source(
        [sample.identifier for sample in samples],
        lambda n: samples[n].read(),
        described,
        protocols,
        lambda n: samples[n].pixels(),
    )


def _arrays(arrays: Sequence[NDArray[Any]] | NDArray[Any], described: str) -> Source:
    check_image_arrays(arrays, described)
    names = [str(number) for number in range(len(arrays))]
    return Source(
        names,
        lambda n: Image.fromarray(to_bytes(arrays[n], described)),
        described,
        pixels=lambda n: arrays[n].shape[0] * arrays[n].shape[1],
    )


def check_image_arrays(arrays: Sequence[NDArray[Any]] | NDArray[Any], described: str) -> None:
    """Refuse what does not have the shape of images, or is partly grey and partly in colour."""
    if isinstance(arrays, np.ndarray) and arrays.ndim not in (3, 4):
        raise UserError(
            f"{described}: shape {arrays.shape} is not (n, height, width) or (n, height, width, "
            f"3); "
            "reshape your data to images"
        )
    for array in arrays:
        if (
            array.ndim not in (2, 3)
            or (array.ndim == 3 and array.shape[2] not in (1, 3))
            or 0 in array.shape
        ):
            raise UserError(
                f"{described}: an image of shape {array.shape} is not (height, width) or (height, "
                f"width, 3)"
            )
        if array.shape[0] * array.shape[1] > LARGEST:
            raise UserError(
                f"{described}: an image of {array.shape[1]}x{array.shape[0]} pixels; at most "
                f"{LARGEST:,} are read; cut it into parts"
            )
    if len({array.ndim == 3 and array.shape[2] == 3 for array in arrays}) > 1:
        raise UserError(f"{described}: holds grey and colour images; convert them all to one kind")


def to_bytes(array: NDArray[Any], described: str) -> NDArray[np.uint8]:
    """8-bit pixels of an array that is 8-bit already, or of floats between 0 and 1."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "bf":
        raise UserError(
            f"{described}: pixels of type {array.dtype} are ambiguous; convert them to uint8"
        )
    if not np.isfinite(array).all():
        raise UserError(f"{described}: holds NaN or infinity; every pixel must be a number")
    if array.min() < 0 or array.max() > 1:
        raise UserError(
            f"{described}: floats must lie between 0 and 1, not {array.min():g} and {array.max():g}"
        )
    return (array * 255.0).round().astype(np.uint8)
