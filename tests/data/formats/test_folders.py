"""Folders of images, by the names of the folders in them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes, write_images
from PIL import Image

from igd.data.dataset import Dataset
from igd.data.formats.folders import categories
from igd.data.reading import read_dataset
from igd.data.sample import UnusableMask
from igd.errors import UserError

IMAGES = stripes(4, side=20)


def write_masks(folder: Path, suffix: str = "_mask", value: int = 255, count: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        mask = np.zeros((20, 20), dtype=np.uint8)
        mask[2:5, 3:9] = value
        Image.fromarray(mask).save(folder / f"{number:03d}{suffix}.png")
    return folder


def counts(dataset: Dataset) -> dict[tuple[str, str, int, bool], int]:
    return dict(
        Counter(
            (each.split, each.kind, each.label, each.mask is not None) for each in dataset.samples
        )
    )


def make_category(folder: Path) -> Path:
    write_images(folder / "train" / "good", IMAGES)
    write_images(folder / "test" / "good", IMAGES[:3])
    write_images(folder / "test" / "dent", IMAGES)
    write_masks(folder / "ground_truth" / "dent")
    return folder


def test_a_plain_folder_is_normal_and_for_training(tmp_path: Path) -> None:
    write_images(tmp_path / "parts" / "monday", IMAGES)
    write_images(tmp_path / "parts", IMAGES[:2])
    dataset = read_dataset(tmp_path / "parts")
    assert counts(dataset) == {("train", "good", 0, False): 6}
    assert (dataset.name, dataset.described) == ("parts", str(tmp_path / "parts"))


def test_mvtec_layout(tmp_path: Path) -> None:
    dataset = read_dataset(str(make_category(tmp_path / "bottle")))
    assert counts(dataset) == {
        ("train", "good", 0, False): 4,
        ("test", "good", 0, False): 3,
        ("test", "dent", 1, True): 4,
    }
    mask = dataset.test_samples()[0].read_mask((20, 20))
    assert mask is not None
    assert mask.sum() == 18
    assert dataset.name_of(dataset.train[0]) == "train/good/000.png"


@pytest.mark.parametrize(("suffix", "value"), [("", 255), ("_mask", 1)])
def test_masks_may_be_called_as_the_image_and_hold_ones(
    tmp_path: Path, suffix: str, value: int
) -> None:
    write_images(tmp_path / "test" / "good", IMAGES)
    write_images(tmp_path / "test" / "dent", IMAGES)
    write_masks(tmp_path / "ground_truth" / "dent", suffix, value)
    dent = [sample for sample in read_dataset(tmp_path).test_samples() if sample.label]
    assert [int(sample.read_mask((20, 20)).sum()) for sample in dent] == [18] * 4


def test_a_jpeg_mask_is_not_quite_black(tmp_path: Path) -> None:
    folder = make_category(tmp_path)
    mask = np.zeros((20, 20), dtype=np.uint8)
    mask[3:11, 4:15] = 255
    for number in range(4):
        (folder / "ground_truth" / "dent" / f"{number:03d}_mask.png").unlink()
        Image.fromarray(mask).save(
            folder / "ground_truth" / "dent" / f"{number:03d}_mask.jpg", quality=75
        )
    sample = read_dataset(folder).test[0]
    assert sample.mask is not None
    assert (np.asarray(Image.open(sample.mask))[mask == 0] > 0).any()
    np.testing.assert_array_equal(sample.read_mask((20, 20)), mask > 0)


def test_a_test_folder_by_itself(tmp_path: Path) -> None:
    folder = make_category(tmp_path / "bottle")
    assert counts(read_dataset(folder / "test")) == {
        ("test", "good", 0, False): 3,
        ("test", "dent", 1, True): 4,
    }
    with pytest.raises(
        UserError, match=r"no training images \(it holds 4 test images of kind 'dent'"
    ):
        read_dataset(folder / "test").training_samples()


def test_normal_and_abnormal(tmp_path: Path) -> None:
    write_images(tmp_path / "normal", stripes(11, side=20))
    write_images(tmp_path / "abnormal", IMAGES)
    dataset = read_dataset(tmp_path)
    expected = {
        ("train", "normal", 0, False): 8,
        ("test", "normal", 0, False): 3,
        ("test", "abnormal", 1, False): 4,
    }
    assert counts(dataset) == expected
    assert read_dataset(tmp_path).samples == dataset.samples


@pytest.mark.parametrize("layout", ["normal/{}", "{}/normal"])
def test_normal_and_abnormal_with_their_own_splits(tmp_path: Path, layout: str) -> None:
    write_images(tmp_path / layout.format("train"), IMAGES)
    write_images(tmp_path / layout.format("test"), IMAGES[:1])
    write_images(
        tmp_path / ("abnormal" if layout.startswith("normal") else "test/abnormal"), IMAGES[:2]
    )
    expected = {
        ("train", "normal", 0, False): 4,
        ("test", "normal", 0, False): 1,
        ("test", "abnormal", 1, False): 2,
    }
    assert counts(read_dataset(tmp_path)) == expected


def test_several_categories(tmp_path: Path) -> None:
    for name in ("capsule", "bottle"):
        make_category(tmp_path / name)
    with pytest.raises(UserError, match=r"holds several data sets; choose one: bottle, capsule$"):
        read_dataset(tmp_path)
    assert categories(tmp_path) == [tmp_path / "bottle", tmp_path / "capsule"]
    assert categories(tmp_path / "bottle") == []


def test_masks_that_are_missing_or_wrong(tmp_path: Path) -> None:
    folder = make_category(tmp_path)
    masks = folder / "ground_truth" / "dent"
    (masks / "002_mask.png").unlink()
    assert read_dataset(folder).test[2].read_mask((20, 20)) is None
    Image.fromarray(np.ones((20, 10), dtype=np.uint8)).save(masks / "002_mask.png")
    sample = read_dataset(folder).test[2]
    with pytest.raises(
        UserError,
        match=r"002_mask\.png: the mask is 10x20, its image 20x20; they must be of one size",
    ):
        sample.read_mask((20, 20))
    Image.fromarray(np.zeros((20, 20), dtype=np.uint8)).save(masks / "002_mask.png")
    with pytest.raises(UnusableMask, match=r"002_mask\.png: marks no pixel"):
        sample.read_mask((20, 20))
    (masks / "002_mask.png").write_bytes(b"nothing")
    with pytest.raises(UnusableMask, match=r"002_mask\.png: not an image"):
        sample.read_mask((20, 20))


def test_empty_folders_and_one_kind(tmp_path: Path) -> None:
    write_images(tmp_path / "test" / "good", IMAGES)
    with pytest.raises(
        UserError, match="none of its 4 test images is anomalous; AUC needs both kinds"
    ):
        read_dataset(tmp_path).test_samples()
    (tmp_path / "train" / "good").mkdir(parents=True)
    with pytest.raises(UserError, match=r"train.good: no images found"):
        read_dataset(tmp_path)
