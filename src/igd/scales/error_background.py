"""Which errors of reconstruction are usual at each position of an image: edges, for one, are hard
to reconstruct in every image, and a map should show what is unusual for its position.
"""

from __future__ import annotations

from torch import Tensor

from igd.scales.position_moments import CELL, PositionDescriptor, PositionMoments

FEWEST_MAPS = 3  # that tell what is usual at a position
NEIGHBOUR_SHRINKAGE, GLOBAL_SHRINKAGE = 0.25, 0.5  # of the variance of a position's error
LEAST_SPREAD = 0.02  # at a position, as a share of the mean error: a few maps may agree by chance


def describe_background(maps: PositionMoments) -> PositionDescriptor | None:
    """A Gaussian of the error at each position, of images that nothing was fitted to; None where
    they are too few, or have no errors.
    """
    least = float(LEAST_SPREAD * maps.mean.mean()) ** 2
    if maps.count < FEWEST_MAPS or not least:
        return None
    return maps.describe(NEIGHBOUR_SHRINKAGE, GLOBAL_SHRINKAGE, ridge=0, least=least)


def background_tensors(background: PositionDescriptor | None) -> dict[str, Tensor]:
    if background is None:
        return {}
    return {"background.mean": background.mean, "background.whitener": background.whitener}


def read_background(tensors: dict[str, Tensor], side: int) -> PositionDescriptor | None:
    """The reverse of `background_tensors`, for maps of this side."""
    if "background.mean" not in tensors:
        return None
    mean, whitener = tensors["background.mean"], tensors["background.whitener"]
    cells = (side // CELL[0]) ** 2
    if mean.shape != (1, side, side) or whitener.shape != (cells, 1, 1):
        raise ValueError("a background of errors of the wrong shape")
    return PositionDescriptor(mean, whitener)
