"""The data set that comes with the package."""

from pathlib import Path

import numpy as np
import pytest

from igd.data.decoding import find_images, read_image
from igd.data.demo import DEFECTS, TEST_EACH, TEST_GOOD, TRAINING, make_demo
from igd.data.reading import read_dataset


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo(tmp_path_factory.mktemp("demo"))


def test_counts_and_masks(demo: Path) -> None:
    assert len(find_images(demo / "train" / "good")) == TRAINING
    samples = read_dataset(demo).test_samples()
    assert sum(sample.label for sample in samples) == TEST_EACH * len(DEFECTS)
    assert len(samples) == TEST_GOOD + TEST_EACH * len(DEFECTS)
    for sample in samples:
        assert (sample.mask is not None) == bool(sample.label)
        if sample.mask:
            share = sample.read_mask(sample.read().size).mean()
            assert 0.002 < share < 0.2, sample.identifier


def test_same_seed_same_pixels(demo: Path, tmp_path: Path) -> None:
    again = make_demo(tmp_path)
    for path in find_images(demo):
        np.testing.assert_array_equal(read_image(path), read_image(again / path.relative_to(demo)))
