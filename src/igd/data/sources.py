"""What people have (a folder, a list of files, arrays, a data set) as images to read by number."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from PIL import Image, ImageOps

from igd.cpu import DECODERS
from igd.data.arrays import (
    batched,
    check_image_arrays,
    images_of,
    is_array,
    is_tensor,
    to_image,
)
from igd.data.dataset import Dataset
from igd.data.decoding import (
    LARGEST,
    claimed_pixels,
    decode_image,
    find_frames,
    find_images,
    read_image,
    to_rgb,
)
from igd.data.frames import is_clip
from igd.data.remote import find_remote_images, is_address, read_remote_image
from igd.data.sample import Sample, groups_of
from igd.errors import UserError

PIXELS_HELD = 50_000_000  # of originals, decoded ahead or waiting for their batch
# Of an image that lies elsewhere, before it is here: a few are fetched at once.
PIXELS_UNKNOWN = PIXELS_HELD // DECODERS


@dataclass(frozen=True)
class Source:
    """Images by number: their names, and how to read one."""

    names: list[str]
    read: Callable[[int], Image.Image]
    described: str  # for error messages: 'parts/good', 'the array'
    # What was done to the data set they come from.
    protocols: list[dict[str, Any]] = field(default_factory=list)
    pixels: Callable[[int], int] = lambda _: 0  # how many one has, before it is decoded
    single: bool = False  # one image was given, not a list with one in it
    groups: list[str] | None = None  # which images belong together: a label for each
    grouped_by: str = ""  # how they were grouped, in words

    def __len__(self) -> int:
        return len(self.names)


def as_source(images: Any) -> Source:
    """Images from whatever people have: a folder, a file, an address such as s3://bucket/parts,
    arrays, tensors, PIL images, encoded bytes, open files, samples, lists or generators of them, a
    data loader's batches, or a data set's training images.
    """
    if isinstance(images, Source):
        return images
    if isinstance(images, Dataset):
        found = _samples(
            images.training_samples(), images.described, [step.to_json() for step in images.steps]
        )
        return replace(found, grouped_by=images.grouped_by)
    if is_address(images):
        addresses = find_remote_images(images)
        return replace(_addresses(addresses, images), single=addresses == [images])
    if isinstance(images, str | Path):
        path = Path(images)
        found = _files(find_frames(path) if is_clip(path) else find_images(path), str(images))
        return replace(found, single=found.names == [str(path)] and not path.is_dir())
    if is_array(images):
        what = "the tensor" if is_tensor(images) else "the array"
        arrays, single = images_of(images, what)
        return replace(_arrays(arrays, what), single=single)
    if _is_picture(images):
        return replace(_pictures([images]), single=True)
    if isinstance(images, Iterable) and not isinstance(images, dict):
        return _listed(list(images), type(images).__name__)
    raise _unknown(type(images).__name__)


def _listed(listed: list[Any], kind: str) -> Source:
    """The images of a list, a generator or a data loader: all of one kind."""
    listed = [_without_label(item) for item in listed]
    if listed and all(is_address(item) for item in listed):
        return _addresses(listed, "the list of addresses")
    if listed and all(isinstance(item, str | Path) for item in listed):
        return _files([Path(item) for item in listed], "the list of files")
    if listed and all(isinstance(item, Sample) for item in listed):
        return _samples(listed, "the list of samples", [])
    if all(is_array(item) for item in listed):
        return _arrays(batched(listed, "the list of arrays"), "the list of arrays")
    if all(_is_picture(item) for item in listed):
        return _pictures(listed)
    kinds = sorted({type(item).__name__ for item in listed})
    raise _unknown(f"{kind} of {' and '.join(kinds)}")


def _without_label(item: Any) -> Any:
    """Of what a data loader gives, (images, labels) or a mapping with `image`, the images."""
    if isinstance(item, tuple | list) and item and is_array(item[0]):
        return item[0]
    if isinstance(item, dict) and "image" in item:
        return item["image"]
    return item


def _is_picture(item: Any) -> bool:
    """A PIL image, the bytes of an image file, or such a file, open."""
    return isinstance(item, Image.Image | bytes | bytearray) or hasattr(item, "read")


def _unknown(kind: str) -> UserError:
    return UserError(
        f"images of type {kind} can't be read; give a folder, a list of files, PIL images, encoded "
        "bytes, or an array of shape (n, height, width) or (n, height, width, 3)"
    )


def _pictures(items: list[Any]) -> Source:
    """PIL images and encoded ones, as the files that hold them would be read."""
    held = [item.read() if hasattr(item, "read") else item for item in items]
    names = [str(getattr(item, "filename", "") or getattr(item, "name", "")) for item in items]
    names = [name or str(number) for number, name in enumerate(names)]

    def read(number: int) -> Image.Image:
        item = held[number]
        if isinstance(item, Image.Image):
            return to_rgb(ImageOps.exif_transpose(item))
        if not isinstance(item, bytes | bytearray):
            raise UserError(f"{names[number]}: open the file in binary mode ('rb')")
        return decode_image(io.BytesIO(item), names[number], LARGEST)

    def pixels(number: int) -> int:
        item = held[number]
        if isinstance(item, Image.Image):
            return item.width * item.height
        return claimed_pixels(io.BytesIO(item)) if isinstance(item, bytes | bytearray) else 0

    return Source(names, read, "the list of images", pixels=pixels)


def _files(paths: list[Path], described: str) -> Source:
    return Source(
        [str(path) for path in paths],
        lambda n: read_image(paths[n]),
        described,
        pixels=lambda n: claimed_pixels(paths[n]),
    )


def _addresses(addresses: list[str], described: str) -> Source:
    return Source(
        addresses,
        lambda n: read_remote_image(addresses[n]),
        described,
        pixels=lambda _: PIXELS_UNKNOWN,
    )


def _samples(samples: list[Sample], described: str, protocols: list[dict[str, Any]]) -> Source:
    return Source(
        [sample.identifier for sample in samples],
        lambda n: samples[n].read(),
        described,
        protocols,
        lambda n: samples[n].pixels(),
        groups=groups_of(samples),
    )


def _arrays(arrays: list[NDArray[Any]], described: str) -> Source:
    check_image_arrays(arrays, described)
    names = [str(number) for number in range(len(arrays))]
    return Source(
        names,
        lambda n: to_image(arrays[n], described),
        described,
        pixels=lambda n: arrays[n].shape[0] * arrays[n].shape[1],
    )
