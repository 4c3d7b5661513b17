"""The data sets: what a split holds, how a copy is told from another, and what is said of files
that don't fit.
"""

from pathlib import Path

import numpy as np
import pytest
from conftest import spotted, stripes, write_images

from igd import UserError
from igd.benchmark.benchmark_data import DATA, find_classes, find_data
from igd.benchmark.run import Protocol
from igd.benchmark.suites import plan


def test_one_class_is_normal_and_the_others_are_not(digits: Path) -> None:
    split = find_data("mnist").read(digits, "1", Protocol(), 0)
    arrays = np.load(digits)
    np.testing.assert_array_equal(
        [sample.image for sample in split.train], arrays["x_train"][arrays["y_train"] == 1]
    )
    assert len(split.test) == len(arrays["x_test"])
    assert [sample.label for sample in split.test] == list((arrays["y_test"] != 1).astype(int))
    assert not any(sample.label for sample in split.train)


def test_a_category_has_its_own_test_images(categories: Path) -> None:
    mvtec = find_data("mvtec")
    assert mvtec.present(categories) == ("bottle",)
    split = mvtec.read(categories, "bottle", Protocol(), 0)
    assert (len(split.train), len(split.test), sum(sample.label for sample in split.test)) == (
        60,
        20,
        10,
    )
    assert all((sample.mask is not None) == bool(sample.label) for sample in split.test)


def test_a_medical_set_is_one_folder(tmp_path: Path) -> None:
    write_images(tmp_path / "train" / "good", stripes(4))
    write_images(tmp_path / "test" / "good", stripes(2))
    write_images(tmp_path / "test" / "polyp", spotted(stripes(3)))
    data = find_data("hyper-kvasir")
    split = data.read(data.locate(tmp_path), "polyp", Protocol(), 0)
    assert (len(split.train), [sample.kind for sample in split.test]) == (
        4,
        ["good"] * 2 + ["polyp"] * 3,
    )


def test_a_changed_copy_has_another_fingerprint(
    digits: Path, categories: Path, tmp_path: Path
) -> None:
    mnist = find_data("mnist")
    arrays = dict(np.load(digits))
    np.savez(tmp_path / "same.npz", **arrays)
    arrays["x_train"][0, 0, 0] ^= 1
    np.savez(tmp_path / "other.npz", **arrays)
    assert mnist.fingerprint(tmp_path / "same.npz") == mnist.fingerprint(digits)
    assert mnist.fingerprint(tmp_path / "other.npz") != mnist.fingerprint(digits)
    mvtec = find_data("mvtec")
    assert mvtec.fingerprint(categories) == mvtec.fingerprint(categories)


def test_classes_by_name_or_number(digits: Path) -> None:
    cifar = DATA["cifar10"]
    assert find_classes(cifar, digits, ["car", "0", "1"]) == ("car", "plane")
    assert len(find_classes(cifar, digits, None)) == 10
    with pytest.raises(
        UserError, match=r"cifar10 has no class 'whale' in .*; there are plane, car"
    ):
        find_classes(cifar, digits, ["whale"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "mnist",
            "absent: no such file or folder; --data names the .npz file of mnist, or its folder",
        ),
        ("mvtec", "absent: no such folder; --data names the folder with the categories of mvtec"),
        (
            "lag",
            "is not lag; --data names its folder as published, or one with train/good, test/good "
            "and test/glaucoma",
        ),
    ],
)
def test_data_that_is_not_there(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        find_data(name).locate(tmp_path / "absent")


def test_an_unknown_data_set() -> None:
    with pytest.raises(
        UserError, match="no data set is called 'imagenet'; there are mnist, fashion-mnist"
    ):
        find_data("imagenet")


@pytest.mark.parametrize("kind", ["npz", "idx"])
def test_another_data_set_under_its_name(tmp_path: Path, kind: str) -> None:
    """The first test labels of Fashion MNIST, in a file that could be MNIST's."""
    labels = np.array([9, 2, 1, 1, 6, 1, 4, 6, 5, 7, 4, 5], dtype=np.uint8)
    path = tmp_path / "mnist.npz" if kind == "npz" else tmp_path
    if kind == "npz":
        np.savez(path, y_test=labels)
    else:
        (path / "t10k-labels-idx1-ubyte").write_bytes(
            bytes([0, 0, 8, 1, 0, 0, 0, len(labels)]) + labels.tobytes()
        )
    with pytest.raises(
        UserError,
        match=r"seems to be fashion-mnist, by its first test labels \(9 2 1 .*\), not mnist",
    ):
        find_data("mnist").check(path)
    with pytest.raises(UserError, match="seems to be fashion-mnist"):
        plan("mnist", path, {}, methods=["ocsvm"])
    find_data("fashion-mnist").check(path)


def test_a_folder_holds_the_file(digits: Path) -> None:
    assert find_data("mnist").locate(digits.parent) == digits


def test_files_that_are_not_the_data(tmp_path: Path, digits: Path) -> None:
    mnist = find_data("mnist")
    text = tmp_path / "text.npz"
    text.write_text("not a zip file")
    with pytest.raises(
        UserError, match=r"not an \.npz file .*; --data names the \.npz file of mnist"
    ):
        mnist.fingerprint(text)
    with pytest.raises(UserError, match="no class is called '7'; there are 0, 1"):
        mnist.read(digits, "7", Protocol(), 0)
    with pytest.raises(
        UserError, match=r"holds no category of mvtec \(bottle, hazelnut, capsule, \.\.\.\)"
    ):
        find_data("mvtec").locate(tmp_path)


def test_the_standard_protocol_changes_nothing(categories: Path) -> None:
    dataset = find_data("mvtec").read(categories, "bottle", Protocol(), 0)
    assert (len(dataset.train), len(dataset.test), dataset.steps) == (60, 20, ())


def test_less_to_learn_from(categories: Path) -> None:
    dataset = find_data("mvtec").read(categories, "bottle", Protocol(training_share=0.2), 0)
    assert (len(dataset.train), len(dataset.test)) == (12, 20)


def test_anomalies_move_into_training_by_seed(digits: Path) -> None:
    def moved(seed: int) -> list[str]:
        dataset = find_data("mnist").read(digits, "1", Protocol(contamination=0.2), seed)
        assert (len(dataset.training_samples()), len(dataset.test_samples())) == (22, 18)
        return dataset.steps[-1].moved

    assert moved(3) == moved(3)
    assert moved(3) != moved(4)


def test_a_folder_without_the_data(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match=r"holds neither mnist\.npz nor the files of mnist"):
        find_data("mnist").locate(tmp_path)
