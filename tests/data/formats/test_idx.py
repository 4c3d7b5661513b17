"""IDX files, as MNIST comes in."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes

from igd.data.formats.idx import NAMES, read_idx
from igd.data.reading import read_dataset
from igd.errors import UserError

ARRAYS = {
    "x_train": stripes(5, side=28),
    "y_train": np.array([7, 2, 1, 0, 7], dtype=np.uint8),
    "x_test": stripes(2, side=28, seed=1),
    "y_test": np.array([1, 7], dtype=np.uint8),
}


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, compressed: bool = False) -> Path:
    for name, array in ARRAYS.items():
        contents = idx(array)
        (folder / (NAMES[name] + ".gz" * compressed)).write_bytes(
            gzip.compress(contents) if compressed else contents
        )
    return folder


@pytest.mark.parametrize("compressed", [False, True])
def test_four_files(tmp_path: Path, compressed: bool) -> None:
    dataset = read_dataset(write(tmp_path, compressed))
    assert dataset.classes == ("0", "1", "2", "7")
    assert [sample.kind for sample in dataset.samples] == ["7", "2", "1", "0", "7", "1", "7"]
    for sample, image in zip(dataset.test, ARRAYS["x_test"], strict=True):
        np.testing.assert_array_equal(np.asarray(sample.read()), image)


def test_a_file_is_missing(tmp_path: Path) -> None:
    (write(tmp_path) / NAMES["y_test"]).unlink()
    with pytest.raises(
        UserError, match=r"of the four IDX files, t10k-labels-idx1-ubyte\[\.gz\] missing"
    ):
        read_dataset(tmp_path)


def test_cut_off_damaged_and_other_files(tmp_path: Path) -> None:
    whole = idx(ARRAYS["x_train"])
    path = tmp_path / "images"
    for spoilt in (whole[:-1], whole + b"\0", whole[:9], b""):
        path.write_bytes(spoilt)
        with pytest.raises(UserError, match=r"images: cut off or damaged.*download it again"):
            read_idx(path)
    path.write_bytes(b"not such a file")
    with pytest.raises(UserError, match="not an IDX file of bytes"):
        read_idx(path)
    path.write_bytes(struct.pack(">HBB3I", 0, 8, 3, 2**31, 2**31, 2**31))
    with pytest.raises(UserError, match=r"claims to hold .* it is damaged"):
        read_idx(path)
    zipped = tmp_path / "images.gz"
    zipped.write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(UserError, match=r"images\.gz: cut off or damaged"):
        read_idx(zipped)
