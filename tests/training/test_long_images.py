"""Images that are no squares are read in their own proportions, from training to the map."""

from pathlib import Path

import numpy as np
import pytest
from conftest import stripes
from PIL import Image

from igd import IGD
from igd.data.geometry import Geometry

SIDE = 96
LONG = (60, 152)  # rows and columns of what a model of that side reads of 1 : 2.5


def long_images(count: int, seed: int = 0) -> np.ndarray:
    """Of 96 rows and 240 columns: (n, rows, columns)."""
    return np.concatenate([stripes(count, side=SIDE, seed=seed + n) for n in range(3)], axis=2)[
        :, :, :240
    ]


@pytest.fixture(scope="module")
def detector() -> IGD:
    return IGD(image_size=SIDE).fit(long_images(24))


def test_a_model_reads_the_proportions_of_its_images(detector: IGD) -> None:
    rows, columns = detector.fitted_.geometry.shape
    assert (rows, columns) == pytest.approx(LONG, abs=1)
    assert detector.fitted_.backbone.shape == (64, 192)


def test_the_map_is_as_large_as_the_image_and_shows_where_it_deviates(detector: IGD) -> None:
    image = long_images(1, seed=70)[0]
    image[20:44, 180:204] = 255
    result = detector.predict(image)
    assert result.is_anomalous
    assert result.map.shape == (96, 240)
    row, column = np.unravel_index(int(result.map.argmax()), result.map.shape)
    assert abs(row - 32) < 24
    assert abs(column - 192) < 24


def test_what_was_saved_scores_as_what_was_learnt(detector: IGD, tmp_path: Path) -> None:
    detector.save(tmp_path / "long.igd")
    images = long_images(4, seed=50)
    np.testing.assert_array_equal(
        IGD.load(tmp_path / "long.igd").score_samples(images), detector.score_samples(images)
    )


def test_the_papers_networks_and_crops_read_squares() -> None:
    images = long_images(6)
    cropped = IGD(image_size=SIDE, fit_to="crop").fit(images)
    assert cropped.fitted_.geometry == Geometry(SIDE, "crop")
    trained = IGD(image_size=64, scales=("global",), recipe="fast", steps=1, width=2).fit(images)
    assert trained.fitted_.geometry.rectangle is None


def test_where_sizes_differ_the_middle_proportion_counts() -> None:
    sizes = [(192, 96), (192, 100), (200, 96), (96, 96)]
    images = [
        Image.fromarray(each).resize(sizes[n % 4]) for n, each in enumerate(stripes(12, side=SIDE))
    ]
    learnt = IGD(image_size=SIDE, fit_to="resize").fit(images)
    rows, columns = learnt.fitted_.geometry.shape
    assert columns / rows == pytest.approx(2, rel=0.05)
