"""What is not a data set."""

from pathlib import Path

import pytest
from conftest import real_data, stripes, write_images

from igd.data.formats.folders import categories
from igd.data.reading import read_dataset
from igd.errors import UserError


def test_paths_that_are_not_data_sets(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder or file"):
        read_dataset(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no images found"):
        read_dataset(tmp_path)
    folder = write_images(tmp_path / "parts", stripes(1))
    with pytest.raises(
        UserError,
        match=r"000\.png: is not a data set; igd reads folders of images, \.csv \.jsonl and \.npz",
    ):
        read_dataset(folder / "000.png")
    with pytest.raises(UserError, match=r"a root \(.*\) is for the paths in a manifest"):
        read_dataset(folder, root=tmp_path)


@pytest.mark.parametrize(
    ("name", "train", "test", "mode"),
    [
        ("mnist", 60_000, 10_000, "L"),
        ("fashion_mnist", 60_000, 10_000, "L"),
        ("cifar10", 50_000, 10_000, "RGB"),
    ],
)
def test_real_arrays(name: str, train: int, test: int, mode: str) -> None:
    dataset = read_dataset(real_data(f"{name}.npz"))
    assert (len(dataset.train), len(dataset.test)) == (train, test)
    assert dataset.classes == tuple("0123456789")
    assert dataset.test[-1].read().mode == mode


def test_real_categories() -> None:
    found = {path.name: read_dataset(path) for path in categories(real_data("mvtec256"))}
    counts = {
        name: (len(each.training_samples()), len(each.test_samples()))
        for name, each in found.items()
    }
    known = {
        "bottle": (209, 83),
        "capsule": (219, 132),
        "grid": (264, 78),
        "screw": (320, 160),
    }
    assert known.items() <= counts.items()
    assert all(
        (sample.mask is not None) == bool(sample.label)
        for each in found.values()
        for sample in each.test
    )
