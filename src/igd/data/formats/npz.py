"""Data sets that are arrays: x_train, y_train, x_test, y_test, from an `.npz` file or wherever they
come from.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd.data.arrays import check_image_arrays, to_bytes
from igd.data.dataset import Dataset
from igd.data.labels import read_labels
from igd.data.sample import NORMAL, Sample, Split
from igd.errors import UserError

Array = NDArray[Any]
SPLITS: tuple[Split, ...] = ("train", "test")
LARGEST = 2**32  # bytes of an array
NAMES = ("x_train", "y_train", "x_test", "y_test")


def read_npz(path: Path) -> Dataset:
    """The data set in an `.npz` file."""
    arrays = read_arrays(path)
    if "x_train" not in arrays and "x_test" not in arrays:
        raise UserError(
            f"{path}: has no array x_train or x_test; name its arrays {', '.join(NAMES)}"
        )
    return array_dataset(path.stem, str(path), arrays)


def read_arrays(path: Path, names: tuple[str, ...] = NAMES) -> dict[str, Array]:
    """Those of the arrays that an `.npz` file has; nothing in it is unpickled, and the others are
    not read.
    """
    try:
        with np.load(path, allow_pickle=False) as opened:
            kept = [name for name in opened.files if name in names]
            for name in kept:
                _check_size(opened.zip, name, path)
            return {name: opened[name] for name in kept}
    except UserError:
        raise
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise UserError(
            f"{path}: can't be read as arrays ({error}); copy it again, or save it with numpy.savez"
        ) from None


def _check_size(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    """That an array's header claims what the archive holds, and no more than is read: NumPy makes
    room for what is claimed.
    """
    entry = archive.getinfo(name if name in archive.namelist() else f"{name}.npy")
    with archive.open(entry) as opened:
        version = np.lib.format.read_magic(opened)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(opened)
        claimed = math.prod(shape) * dtype.itemsize
    if claimed > min(LARGEST, entry.file_size):
        raise UserError(
            f"{path}: its array {name} claims to hold {claimed:,} bytes, of {entry.file_size:,} "
            f"that are there and {LARGEST:,} that are read; save it with numpy.savez, in parts if "
            f"it is that large"
        )


def array_dataset(name: str, described: str, arrays: dict[str, Array]) -> Dataset:
    """Images `x_...` (n, h, w[, 3]) with labels `y_...` (n,); without y_train, the training images
    are normal.
    """
    images = {
        split: _images(arrays.get(f"x_{split}"), f"{described}, x_{split}") for split in SPLITS
    }
    if len({image.ndim for each in images.values() for image in each}) > 1:
        raise UserError(f"{described}: x_train and x_test must both be grey or both be in colour")
    labelled = [split for split in SPLITS if split == "test" or "y_train" in arrays]
    kinds = [
        kind
        for split in labelled
        for kind in _kinds(arrays.get(f"y_{split}"), split, len(images[split]), described)
    ]
    labels, classes = read_labels(kinds, described)
    unlabelled = len(images["train"]) if "train" not in labelled else 0
    if classes and unlabelled:
        raise UserError(
            f"{described}: y_test has the classes {', '.join(classes)}, and x_train has no "
            f"labels; add y_train"
        )
    named = [
        (split, number, image) for split in SPLITS for number, image in enumerate(images[split])
    ]
    said = [(NORMAL, 0)] * unlabelled + list(zip(kinds, labels, strict=True))
    samples = [
        Sample(f"{split} {number}", image, kind, label, split=split)
        for (split, number, image), (kind, label) in zip(named, said, strict=True)
    ]
    return Dataset(name, samples, described, classes)


def _images(pixels: Array | None, described: str) -> list[NDArray[np.uint8]]:
    if pixels is None or not len(pixels):
        return []
    check_image_arrays(pixels, described, (1, 3))
    return [to_bytes(image, described) for image in pixels]


def _kinds(labels: Array | None, split: Split, count: int, described: str) -> list[str]:
    """The labels of one split as text, one for each of its images."""
    if labels is None and not count:
        return []
    if labels is None:
        raise UserError(
            f"{described}: x_{split} has no labels; add y_{split}, with 0 for normal images and 1 "
            f"for others"
        )
    if labels.shape not in ((count,), (count, 1)):
        raise UserError(
            f"{described}: y_{split} has the shape {labels.shape}, but x_{split} {count} images; "
            f"give a label each"
        )
    if labels.dtype.kind not in "biuU":
        raise UserError(
            f"{described}: y_{split} holds {labels.dtype}; labels must be whole numbers or text"
        )
    flat = labels.reshape(-1)
    return [
        str(label) for label in (flat.astype(np.int64) if flat.dtype.kind == "b" else flat).tolist()
    ]
