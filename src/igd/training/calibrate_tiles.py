"""The promise about images that are read in tiles: one score and one threshold for the whole image.

An image's score is that of its worst tile. So all tiles of every calibration image are measured, by
a model that learnt from none of them, each part is scaled by the highest values that images reach
in it, and the threshold is one of scores of images: what is calibrated is what is promised, however
many tiles there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from igd.data.geometry import Geometry
from igd.data.row_buffer import RowBuffer
from igd.data.tiles import Tiling
from igd.inference.conformal import Calibration, threshold
from igd.inference.tiled import stitch
from igd.rng import generator
from igd.scales.base import FeatureScale, ScaleOutput
from igd.scales.fusion import Fusion, RobustScaler
from igd.training.calibrate import CALM, SPARSE, UPPER_SCORE, fit_fusion
from igd.training.crossfit import Distances, outputs_of

MAPPED = 256  # tiles, at most, that tell how the values of maps are distributed
NO_MAP = (1, 1)  # size of maps that nobody needs


def fit_tile_fusion(
    scales: Sequence[FeatureScale], images: Sequence[Distances], side: int
) -> Fusion:
    """How far normal images deviate in each part of the score, at their worst tile, and tiles in
    each map.
    """
    rng, each = generator(0, "mapped tiles"), -(-MAPPED // len(images))
    drawn = [torch.randperm(len(image[0][0]), generator=rng)[:each] for image in images]
    some = [
        [
            _joined([image[n][m][own] for image, own in zip(images, drawn, strict=True)])
            for m in range(len(parts))
        ]
        for n, parts in enumerate(images[0])
    ]
    fusion = fit_fusion(outputs_of(scales, some, (side, side)), on_features=True)
    worst = torch.stack([_parts(scales, image).amax(dim=0) for image in images])
    return replace(
        fusion, scalers=[RobustScaler.fit_upper(column, UPPER_SCORE) for column in worst.T]
    )


def calibrate_tiles(
    scales: Sequence[FeatureScale],
    images: Sequence[tuple[tuple[int, int], Distances]],  # width and height of each, and its tiles
    fusion: Fusion,
    rate: float,
    tiling: Tiling,
    geometry: Geometry,
) -> tuple[Fusion, Calibration]:
    """The fusion whose score of 1/2 is the threshold at this rate, and the calibration that
    promises it.
    """
    deviations, peaks, levels = RowBuffer(), [], []
    for size, tiles in images:
        deviations.add(image_deviation(scales, tiles, fusion))
        whole = stitch(_maps(scales, tiles, fusion, geometry.side), size, tiling, geometry)
        peaks.append(whole.max())
        levels.append(np.quantile(whole[::SPARSE, ::SPARSE], CALM))
    fusion = fusion.at_threshold(threshold(deviations.all, rate))
    scores = fusion.bounded(deviations.all).numpy()
    return fusion, Calibration(scores, np.array(peaks), float(np.mean(levels)), rate)


def image_deviation(scales: Sequence[FeatureScale], tiles: Distances, fusion: Fusion) -> Tensor:
    """The deviation of the worst tile of an image: (1,)."""
    parts = _parts(scales, tiles)
    return fusion.soft_maximum(list(parts.T)).amax(dim=0, keepdim=True)


def _parts(scales: Sequence[FeatureScale], tiles: Distances) -> Tensor:
    """The parts of the score of all tiles of an image: (tiles, parts)."""
    return torch.cat([_stacked(outputs) for outputs in outputs_of(scales, _floats(tiles), NO_MAP)])


def _maps(
    scales: Sequence[FeatureScale], tiles: Distances, fusion: Fusion, side: int
) -> Iterator[NDArray[np.float32]]:
    for outputs in outputs_of(scales, _floats(tiles), (side, side)):
        yield from fusion.map(outputs).numpy()


def _stacked(outputs: list[ScaleOutput]) -> Tensor:
    return torch.stack([part for output in outputs for part in output.parts], dim=1)


def _joined(rows: list[Tensor]) -> Tensor:
    return torch.cat(rows).float()


def _floats(tiles: Distances) -> Distances:
    return [[rows.float() for rows in parts] for parts in tiles]
