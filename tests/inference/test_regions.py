"""Areas of a heat map, beside SciPy's labelling of the same map."""

import numpy as np
import pytest
from scipy import ndimage

from igd.inference.regions import outlined, regions


def oracle(anomaly_map: np.ndarray, threshold: float) -> list[tuple]:
    labels, _ = ndimage.label(anomaly_map > threshold)
    found = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        inside = labels == number
        box = columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start
        found.append((*box, int(inside.sum()), float(anomaly_map[inside].max())))
    return sorted(found, key=lambda each: (-each[4], each))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (37, 53)])
def test_finds_what_scipy_finds(shape: tuple[int, int], share: float) -> None:
    anomaly_map = np.random.default_rng(round(100 * share)).random(shape, dtype=np.float32)
    found = sorted(
        map(tuple, regions(anomaly_map, 1 - share, most=anomaly_map.size)),
        key=lambda each: (-each[4], each),
    )
    assert found == oracle(anomaly_map, 1 - share)


def test_the_largest_come_first_and_few_are_named() -> None:
    anomaly_map = np.zeros((40, 200), dtype=np.float32)
    for number in range(30):
        anomaly_map[3 : 4 + number, 6 * number] = 0.5
    found = regions(anomaly_map, 0.1)
    assert [each.area for each in found] == list(range(30, 10, -1))


def test_corners_do_not_touch() -> None:
    assert len(regions(np.eye(4, dtype=np.float32), 0.5)) == 4


def test_a_calm_map_has_none() -> None:
    assert regions(np.full((9, 9), 0.3, dtype=np.float32), 0.3) == []


USUAL, LIMIT = 0.35, 0.55


def blobs(*each: tuple[int, int, float], size: int = 64, width: float = 5) -> np.ndarray:
    """A map with Gaussian blobs: the column and row of each, and its height, a root of odds."""
    y, x = np.mgrid[:size, :size]
    roots = np.sqrt(USUAL / (1 - USUAL)) + sum(
        height * np.exp(-((x - left) ** 2 + (y - upper) ** 2) / (2 * width**2))
        for left, upper, height in each
    )
    odds = roots**2
    return (odds / (1 + odds)).astype(np.float32)


def half_height(anomaly_map: np.ndarray) -> np.ndarray:
    """The outlined pixels, area after area, by SciPy."""
    height, base, limit = (
        np.sqrt(v / (1 - v)) for v in (anomaly_map.astype(np.float64), USUAL, LIMIT)
    )
    marked = np.zeros(anomaly_map.shape, dtype=bool)
    for level, is_wide in ((limit, False), ((base + limit) / 2, True)):
        labels, count = ndimage.label(height > level)
        for number in range(1, count + 1):
            inside = labels == number
            peak = height[inside].max()
            half = (base + peak) / 2
            if peak > limit and (not is_wide or half < limit):
                marked |= inside & (height > half)
    return marked


@pytest.mark.parametrize("seed", range(6))
def test_areas_are_outlined_at_half_their_height(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = [(*rng.integers(0, 64, 2), rng.uniform(0.1, 8)) for _ in range(8)]
    anomaly_map = blobs(*places, width=4)
    marked = outlined(anomaly_map, USUAL, LIMIT)
    np.testing.assert_array_equal(marked, half_height(anomaly_map))
    labels, count = ndimage.label(anomaly_map > LIMIT)
    assert all(marked[labels == number].any() for number in range(1, count + 1))  # none is lost


def test_a_stronger_spot_is_not_larger() -> None:
    weak, strong = blobs((32, 32, 2.0)), blobs((32, 32, 80.0))
    sizes = [outlined(each, USUAL, LIMIT).sum() for each in (weak, strong)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)
    assert (strong > LIMIT).sum() > 2 * (weak > LIMIT).sum()


def test_what_barely_reaches_the_threshold_is_outlined_whole() -> None:
    faint = blobs((32, 32, 0.4))
    assert 0 < (faint > LIMIT).sum() < outlined(faint, USUAL, LIMIT).sum() / 3
    assert not outlined(blobs((32, 32, 0.3)), USUAL, LIMIT).any()  # does not reach it


def test_a_weak_spot_beside_a_strong_one_stays() -> None:
    marked = outlined(blobs((20, 32, 20.0), (46, 32, 0.8)), USUAL, LIMIT)
    assert marked[32, 20]
    assert marked[32, 46]
    assert not marked[32, 34]
