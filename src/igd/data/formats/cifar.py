"""CIFAR-10's own 'python version': pickles, read without running anything that they say."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd.data.dataset import Dataset
from igd.data.formats.npz import array_dataset
from igd.errors import UserError

FOLDER = "cifar-10-batches-py"
TRAINING = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
SIDE = 32


def is_cifar(folder: Path) -> bool:
    return (folder / TRAINING[0]).is_file() or (folder / FOLDER).is_dir()


def read_cifar(folder: Path) -> Dataset:
    """The five training batches and the test batch, in this folder or in the one the archive
    unpacks to.
    """
    inside = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    missing = [name for name in (*TRAINING, TEST) if not (inside / name).is_file()]
    if missing:
        raise UserError(
            f"{inside}: {', '.join(missing)} missing; unpack the whole archive of CIFAR-10"
        )
    batches = [read_batch(inside / name) for name in TRAINING]
    x_test, y_test = read_batch(inside / TEST)
    arrays = {
        "x_train": np.concatenate([images for images, _ in batches]),
        "y_train": np.concatenate([labels for _, labels in batches]),
        "x_test": x_test,
        "y_test": y_test,
    }
    return array_dataset("cifar-10", str(folder), arrays)


def read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, 32, 32, 3) and labels (n,) of one batch file."""
    try:
        with path.open("rb") as opened:
            batch = _BatchUnpickler(opened, encoding="bytes").load()
        data, labels = batch[b"data"].array, np.array(batch[b"labels"], dtype=np.int64)
        images = data.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    except UserError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise UserError(
            f"{path}: not a batch of CIFAR-10, or damaged ({error}); download it again"
        ) from None
    return np.ascontiguousarray(images), labels


class _BatchUnpickler(pickle.Unpickler):
    """Numbers, text, lists, dictionaries, and arrays of bytes; nothing else.

    A pickle is a program: it may call any function it can name, so reading one from the internet
    with `pickle.load` hands over the machine. This one can name three things, and what it gets for
    them is not numpy's own but the two passive classes below, which only take note. Everything else
    is refused before it is imported.
    """

    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return lambda *_: _PickledArray()
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return _PickledType
        raise pickle.UnpicklingError(
            f"it asks for {module}.{name}, which no batch of CIFAR-10 needs: it may be an attack"
        )


class _PickledType:
    """An element type, by its name."""

    def __init__(self, name: bytes | str = b"", *_: Any) -> None:
        self.name = name.decode() if isinstance(name, bytes) else name

    def __setstate__(self, state: Any) -> None:
        pass  # byte order and the like, which bytes do not have


class _PickledArray:
    """An array of bytes, from the state that numpy gave it: (version, shape, type, column order,
    values).
    """

    array: NDArray[np.uint8]

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, column_order, values = state
        if kind.name != "u1" or column_order or len(values) != math.prod(shape):
            raise pickle.UnpicklingError("its images are not an array of bytes, or not all there")
        self.array = np.frombuffer(values, dtype=np.uint8).reshape(shape)
