"""IDX files, as MNIST and Fashion MNIST are published in: four of them in a folder, compressed or
not.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from igd.data.dataset import Dataset
from igd.data.formats.npz import array_dataset
from igd.errors import UserError

NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
BYTES = 8  # the code of IDX for unsigned bytes
LARGEST = 2**32  # bytes; a header that claims more is damaged


def find_idx(folder: Path) -> dict[str, Path]:
    """Those of the four files that are there, by the array they hold."""
    spellings = {
        array: (name, f"{name}.gz", name.replace("-idx", ".idx")) for array, name in NAMES.items()
    }
    return {
        array: folder / name
        for array, names in spellings.items()
        for name in names[::-1]
        if (folder / name).is_file()
    }


def read_idx_folder(folder: Path) -> Dataset:
    found = find_idx(folder)
    missing = [f"{name}[.gz]" for array, name in NAMES.items() if array not in found]
    if missing:
        raise UserError(
            f"{folder}: of the four IDX files, {', '.join(missing)} missing; add what is"
        )
    return array_dataset(
        folder.resolve().name, str(folder), {array: read_idx(path) for array, path in found.items()}
    )


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An array of bytes from an IDX file: two zeros, type, number of dimensions, each dimension,
    then the values.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
            zeros, kind, dimensions = struct.unpack(">HBB", opened.read(4))
            if zeros or kind != BYTES or not 1 <= dimensions <= 3:
                raise UserError(f"{path}: not an IDX file of bytes; download it again")
            shape = struct.unpack(f">{dimensions}I", opened.read(4 * dimensions))
            if math.prod(shape) > LARGEST:
                raise UserError(
                    f"{path}: claims to hold {math.prod(shape):,} bytes; it is damaged, download "
                    f"it again"
                )
            # One more than there should be, so that nothing after it is missed.
            values = opened.read(math.prod(shape) + 1)
    except (OSError, EOFError, struct.error, zlib.error) as error:
        raise UserError(f"{path}: cut off or damaged ({error}); download it again") from None
    if len(values) != math.prod(shape):
        raise UserError(
            f"{path}: cut off or damaged: its header and its length disagree; download it again"
        )
    return np.frombuffer(values, dtype=np.uint8).reshape(shape)
