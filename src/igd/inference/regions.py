"""Connected areas of an anomaly map, as boxes. In NumPy alone: a machine that only predicts needs
no SciPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from igd.inference.conformal import p_values

MOST = 20  # regions of one image; more are noise
ALMOST_ONE = 1 - 1e-6  # the highest value whose odds are a number

Map = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Region(NamedTuple):
    """A box around pixels of the map that touch each other and all lie above the threshold."""

    x: int  # of its left edge, in pixels of the original image
    y: int
    width: int
    height: int
    area: int  # pixels above the threshold
    peak: float  # the highest value of the map in it


class Runs(NamedTuple):
    """Pixels above a threshold that follow each other in a row: (n,) each, in reading order."""

    row: NDArray[np.intp]
    start: NDArray[np.intp]
    end: NDArray[np.intp]  # one past the last


def outlined(anomaly_map: Map, usual: float, threshold: float) -> Mask:
    """The pixels of a map (h, w) that make up its deviating areas, each down to half its height.

    A small defect lights up the map for some way around it, the farther the stronger it is: what
    lies above the threshold, which only says that something is there, is then several times its
    size. So each area above the threshold is cut at half the way from what is usual to its own
    peak. Where that is below the threshold, the area grows to it instead, unless a stronger one is
    next to it. Heights are roots of odds, v / (1 - v): values crowd below 1, and by the odds
    themselves one strong pixel would stand for the whole area.
    """
    if not (anomaly_map > threshold).any():
        return np.zeros(anomaly_map.shape, dtype=np.bool_)
    height, limit = _height(anomaly_map), _height(np.float32(threshold))
    base = np.minimum(_height(np.float32(usual)), limit)
    own = _peak_around(height, anomaly_map > threshold)
    wide = _peak_around(height, height > (base + limit) / 2)
    grows = (wide > limit) & ((base + wide) / 2 < limit)
    level = (base + np.where(grows, wide, own)) / 2
    marked: Mask = (grows | (own > 0)) & (height > level)
    return marked


def regions(anomaly_map: Map, threshold: float, most: int = MOST) -> list[Region]:
    """Areas of a map (h, w) above the threshold, the largest first; pixels touch by their sides,
    not their corners.
    """
    runs = _runs(anomaly_map > threshold)
    if not len(runs.row):
        return []
    label, peak = _labelled(anomaly_map, runs)
    count = len(peak)
    left, upper = (np.full(count, np.iinfo(np.intp).max) for _ in range(2))
    right, lower, area = (np.zeros(count, dtype=np.intp) for _ in range(3))
    np.minimum.at(left, label, runs.start)
    np.maximum.at(right, label, runs.end)
    np.minimum.at(upper, label, runs.row)
    np.maximum.at(lower, label, runs.row + 1)
    np.add.at(area, label, runs.end - runs.start)
    largest = np.argsort(-area, kind="stable")[:most]
    boxes = np.stack([left, upper, right - left, lower - upper, area], axis=1)[largest].tolist()
    return [
        Region(x, y, w, h, size, float(highest))
        for (x, y, w, h, size), highest in zip(boxes, peak[largest], strict=True)
    ]


def rare_regions(anomaly_map: Map, limit: float, peaks: ArrayLike) -> list[dict[str, Any]]:
    """Regions above the limit as results hold them: box, area, peak, and the share of normal images
    whose maps reach such a peak anywhere, by the peaks of the calibration images.
    """
    found = regions(anomaly_map, limit)
    rarities = p_values([region.peak for region in found], peaks)
    return [
        {**region._asdict(), "p_value": float(rarity)}
        for region, rarity in zip(found, rarities, strict=True)
    ]


def _height(values: NDArray[np.float32] | np.float32) -> NDArray[np.float32]:
    inside = np.clip(values, 0, np.float32(ALMOST_ONE))
    root: NDArray[np.float32] = np.sqrt(inside / (1 - inside))
    return root


def _peak_around(height: Map, mask: Mask) -> Map:
    """For each marked pixel, the highest value of its area; 0 elsewhere."""
    runs, highest = _runs(mask), np.zeros_like(height)
    label, peak = _labelled(height, runs)
    highest[mask] = np.repeat(peak[label], runs.end - runs.start)  # both in reading order
    return highest


def _labelled(anomaly_map: Map, runs: Runs) -> tuple[NDArray[np.intp], Map]:
    """The number of the area of each run, and the highest value of each area."""
    _, label = np.unique(_joined(runs, anomaly_map.shape[1]), return_inverse=True)
    peak = np.zeros(int(label.max()) + 1, dtype=np.float32)
    np.maximum.at(peak, label, _peaks(anomaly_map, runs))
    return label, peak


def _runs(mask: Mask) -> Runs:
    padded = np.pad(mask, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(padded, axis=1)
    row, start = np.nonzero(change == 1)
    _, end = np.nonzero(change == -1)
    return Runs(row, start, end)


def _joined(runs: Runs, width: int) -> NDArray[np.intp]:
    """For each run, the first run of the area it belongs to: runs of neighbouring rows that overlap
    are one area.
    """
    stride = width + 1  # a gap after each row, so that a run never touches one of the next row
    start, end = runs.row * stride + runs.start, runs.row * stride + runs.end
    # Of those in the row above that end after it starts.
    first = np.searchsorted(end, start - stride, side="right")
    # And the first of those that start after it ends.
    past = np.searchsorted(start, end - stride, side="left")
    root = list(range(len(start)))

    def find(run: int) -> int:
        while root[run] != run:
            root[run] = root[root[run]]
            run = root[run]
        return run

    for run, (above, below) in enumerate(zip(first.tolist(), past.tolist(), strict=True)):
        for touching in range(above, below):
            one, other = sorted((find(run), find(touching)))
            root[other] = one
    return np.array([find(run) for run in range(len(root))], dtype=np.intp)


def _peaks(anomaly_map: Map, runs: Runs) -> Map:
    """The highest value in each run."""
    flat = np.append(anomaly_map.ravel(), np.float32(0))  # so that a run may end where the map does
    bounds = np.stack(
        [runs.row * anomaly_map.shape[1] + runs.start, runs.row * anomaly_map.shape[1] + runs.end],
        axis=1,
    ).ravel()
    highest: NDArray[np.float32] = np.maximum.reduceat(flat, bounds)[::2]
    return highest
