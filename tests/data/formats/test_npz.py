"""Arrays in an .npz file."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes

from igd.data.reading import read_dataset
from igd.errors import UserError

ARRAYS = {
    "x_train": stripes(6),
    "y_train": np.array([0, 1, 2, 0, 1, 2]),
    "x_test": stripes(3, seed=1),
    "y_test": np.array([0, 1, 2]),
}


def write(path: Path, **changes: np.ndarray | None) -> Path:
    np.savez(
        path, **{name: array for name, array in {**ARRAYS, **changes}.items() if array is not None}
    )
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shapes.npz"


def test_classes(path: Path) -> None:
    dataset = read_dataset(write(path))
    assert (dataset.name, dataset.classes) == ("shapes", ("0", "1", "2"))
    assert [(each.identifier, each.kind) for each in dataset.samples[4:8]] == [
        ("train 4", "1"),
        ("train 5", "2"),
        ("test 0", "0"),
        ("test 1", "1"),
    ]
    np.testing.assert_array_equal(np.asarray(dataset.test[2].read()), ARRAYS["x_test"][2])


def test_normal_and_anomalous(path: Path) -> None:
    dataset = read_dataset(write(path, y_train=None, y_test=np.array([[False], [True], [True]])))
    assert dataset.classes == ()
    assert len(dataset.training_samples()) == 6
    assert [sample.label for sample in dataset.test_samples()] == [0, 1, 1]


def test_floats_and_one_channel_become_bytes(path: Path) -> None:
    dataset = read_dataset(write(path, x_train=ARRAYS["x_train"][..., None] / 255))
    np.testing.assert_array_equal(np.asarray(dataset.train[3].read()), ARRAYS["x_train"][3])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"y_train": np.zeros(5, dtype=int)},
            r"y_train has the shape \(5,\), but x_train 6 images; give a label each",
        ),
        (
            {"y_train": None},
            "y_test has the classes 0, 1, 2, and x_train has no labels; add y_train",
        ),
        ({"y_test": None}, "x_test has no labels; add y_test"),
        ({"y_train": np.zeros(6)}, "y_train holds float64; labels must be whole numbers or text"),
        ({"y_train": np.zeros((6, 2), dtype=int)}, r"y_train has the shape \(6, 2\)"),
        (
            {"x_train": np.zeros((6, 9), dtype=np.uint8)},
            r"x_train: shape \(6, 9\) is not \(n, height, width\)",
        ),
        ({"x_train": np.zeros((6, 9, 9, 4), dtype=np.uint8)}, "x_train: an image of shape"),
        (
            {"x_train": np.zeros((6, 9, 9), dtype=np.int64)},
            "x_train: pixels of type int64 are ambiguous",
        ),
        (
            {"x_test": np.zeros((3, 9, 9, 3), dtype=np.uint8)},
            "must both be grey or both be in colour",
        ),
        ({"x_train": None, "x_test": None}, "has no array x_train or x_test; name its arrays"),
        ({"x_train": np.array([None] * 6)}, "can't be read as arrays .*pickle"),
    ],
)
def test_arrays_that_can_not_be_used(
    path: Path, changes: dict[str, np.ndarray | None], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        read_dataset(write(path, **changes))


def test_cut_off_and_damaged_files(path: Path) -> None:
    whole = write(path).read_bytes()
    for spoilt in (
        whole[:-100],
        whole[:50],
        b"",
        b"text",
        whole[:2000] + b"\0" * 200 + whole[2200:],
    ):
        path.write_bytes(spoilt)
        with pytest.raises(
            UserError, match=r"shapes\.npz: can't be read as arrays .*copy it again"
        ):
            read_dataset(path)


def test_an_array_that_claims_more_than_is_there(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", header.getvalue() + bytes(100))
    with pytest.raises(UserError, match=r"x_train claims to hold 1,000,000,000,000 bytes"):
        read_dataset(path)


def test_arrays_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "images.npz", x_train=np.zeros((10, 32, 32), np.uint8))
    assert len(read_dataset(tmp_path / "images.npz").samples) == 10
    monkeypatch.setattr("igd.data.formats.npz.LARGEST", 10_000)
    with pytest.raises(UserError, match="10,240 bytes"):
        read_dataset(tmp_path / "images.npz")
