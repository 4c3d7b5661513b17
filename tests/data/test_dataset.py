"""A data set says what is wrong with it before anybody trains or tests on it."""

from dataclasses import replace

import numpy as np
import pytest

from igd.data.dataset import Dataset, Step
from igd.data.sample import Sample
from igd.errors import UserError

IMAGE = np.zeros((9, 9), dtype=np.uint8)
LEARN, GOOD = Sample("train 0", IMAGE, split="train"), Sample("test 0", IMAGE)
DENT = Sample("test 1", IMAGE, "dent", 1)


def made(*samples: Sample) -> Dataset:
    return Dataset("parts", list(samples), "parts.npz")


def test_views() -> None:
    dataset = made(LEARN, GOOD, DENT)
    assert dataset.train == dataset.training_samples() == [LEARN]
    assert dataset.test == dataset.test_samples() == [GOOD, DENT]


def test_the_same_image_twice() -> None:
    with pytest.raises(
        UserError, match=r"parts.npz: test 0 is in it 2 times; list every image once"
    ):
        made(LEARN, GOOD, replace(GOOD, split="train"))


def test_empty_splits() -> None:
    with pytest.raises(
        UserError,
        match=r"no training images \(it holds 1 test images of kind 'dent'\); give a folder",
    ):
        made(DENT).training_samples()
    with pytest.raises(
        UserError, match=r"no labelled test images \(it holds 1 train images of kind 'good'\)"
    ):
        made(LEARN).test_samples()
    with pytest.raises(UserError, match="no training images in it"):
        made().training_samples()


def test_one_kind_only_has_no_auc() -> None:
    with pytest.raises(UserError, match="none of its 1 test images is anomalous; AUC needs both"):
        made(LEARN, GOOD).test_samples()
    with pytest.raises(UserError, match="none of its 1 test images is normal; AUC needs both"):
        made(LEARN, DENT).test_samples()


def test_anomalies_are_trained_on_only_where_a_protocol_moved_them() -> None:
    stray = replace(DENT, split="train")
    with pytest.raises(
        UserError, match="1 of its training images are labelled anomalous, test 1 among them"
    ):
        made(LEARN, stray).training_samples()
    moved = replace(made(LEARN, stray), steps=(Step("contamination", 0.1, 0, ["test 1"]),))
    assert moved.training_samples() == [LEARN, stray]


def test_classes_ask_for_a_choice() -> None:
    for use in (Dataset.training_samples, Dataset.test_samples):
        with pytest.raises(UserError, match="has the classes cat, dog; say which one is normal"):
            use(Dataset("pets", [LEARN], "pets", ("cat", "dog")))
