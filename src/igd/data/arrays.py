"""Arrays and tensors as images: which axis holds the channels is decided by the shape, and a shape
that can be read in two ways is refused.

(h, w)                         one grey image
(h, w, 3), (h, w, 4)           one image in colour, with or without transparency
(n, h, w)                      grey images; refused for n = 3, which may be colours
(n, h, w, c), (n, c, h, w)     images, c = 1, 3 or 4
Tensors have channels first, as everywhere in PyTorch: (c, h, w) is one image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.decoding import LARGEST, to_rgb
from igd.errors import UserError

CHANNELS = (1, 3, 4)
Array = NDArray[Any]


def is_tensor(item: Any) -> bool:
    """Whether this is a PyTorch tensor, told without importing PyTorch."""
    return hasattr(item, "detach") and hasattr(item, "numpy")


def is_array(item: Any) -> bool:
    return isinstance(item, np.ndarray) or is_tensor(item)


def images_of(array: Any, described: str) -> tuple[list[Array], bool]:
    """The images (h, w[, c]) in an array or tensor, and whether it is a single one."""
    channels_first = is_tensor(array)
    array = as_numpy(array)
    if array.ndim == 2:
        return [array], True
    if array.ndim == 3:
        if _is_one(array, channels_first, described):
            return [channels_last(array, described, channels_first)], True
        return list(array), False
    if array.ndim == 4:
        return [channels_last(image, described, channels_first) for image in array], False
    raise UserError(
        f"{described}: shape {array.shape} is not (n, height, width) or (n, height, width, 3); "
        "reshape your data to images"
    )


def batched(items: Iterable[Any], described: str) -> list[Array]:
    """The images of arrays in a list, each one image or a batch (n, ...) of them."""
    found: list[Array] = []
    for item in items:
        array = as_numpy(item)
        if array.ndim == 4:
            found += images_of(item, described)[0]
        else:
            found.append(
                channels_last(array, described, is_tensor(item)) if array.ndim == 3 else array
            )
    return found


def as_numpy(array: Any) -> Array:
    taken: Array = array.detach().cpu().numpy() if is_tensor(array) else array
    return taken


def channels_last(image: Array, described: str, channels_first: bool = False) -> Array:
    """One image (h, w, c), whichever of its axes holds the channels."""
    first, last = image.shape[0] in CHANNELS, image.shape[2] in CHANNELS
    if first and last and not channels_first:
        raise UserError(
            f"{described}: an image of shape {image.shape} may have its channels first or last; "
            "give an image with more than 4 rows and columns"
        )
    if first:
        return np.moveaxis(image, 0, 2)
    return image


def _is_one(array: Array, channels_first: bool, described: str) -> bool:
    """Whether three axes are one image, and not several grey ones."""
    if array.shape[2] in CHANNELS or (channels_first and array.shape[0] in CHANNELS):
        return True
    if array.shape[0] == 3:
        n, height, width = array.shape
        raise UserError(
            f"{described}: shape {array.shape} may be one image in colour, channels first, or "
            f"{n} grey images; give ({height}, {width}, {n}) or (1, {n}, {height}, {width}) for "
            f"the one, ({n}, {height}, {width}, 1) for the others"
        )
    return False


def to_image(array: Array, described: str) -> Image.Image:
    """An array (h, w[, c]) as an image, grey or RGB."""
    pixels = to_bytes(array, described)
    image = Image.fromarray(pixels)
    return image if image.mode == "L" else to_rgb(image)


def check_image_arrays(
    arrays: Sequence[Array] | Array, described: str, channels: tuple[int, ...] = CHANNELS
) -> None:
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
            or (array.ndim == 3 and array.shape[2] not in channels)
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
    if len({array.ndim == 3 and array.shape[2] > 1 for array in arrays}) > 1:
        raise UserError(f"{described}: holds grey and colour images; convert them all to one kind")


def to_bytes(array: Array, described: str) -> NDArray[np.uint8]:
    """8-bit pixels of an array that is 8-bit already, or of floats between 0 and 1."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "bf":
        raise UserError(
            f"{described}: pixels of type {array.dtype} are ambiguous; convert them to uint8"
        )
    if not np.isfinite(array).all():
        raise UserError(f"{described}: holds NaN or infinity; every pixel must be a number")
    if array.min() < 0 or array.max() > 1:
        raise UserError(
            f"{described}: floats must lie between 0 and 1, not {array.min():g} and "
            f"{array.max():g}; undo a normalisation, if there was one"
        )
    return (array * 255.0).round().astype(np.uint8)
