"""Areas of a heat map, beside SciPy's labelling of the same map."""

import numpy as np
import pytest
from scipy import ndimage

from igd.inference.regions import regions


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
