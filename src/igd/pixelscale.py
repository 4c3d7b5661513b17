"""The third scale, 'pixel': a Gaussian descriptor at each position of a frozen backbone's feature maps."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from igd.errors import UserError
from igd.looking import Look
from igd.method.filters import resize
from igd.method.positions import CELL, PositionDescriptor, PositionMoments, features_last, mahalanobis
from igd.pretraining.features import Seen
from igd.recipes import PixelSettings

QUIET = 0.25  # share of an image's positions that even a large defect leaves alone


class PixelScale:
    """Descriptors of some blocks of the backbone, learnt in one pass over the images and no step of training."""

    def __init__(self, settings: PixelSettings, image_side: int) -> None:
        self.settings, self.side = settings, image_side
        self.history: Tensor | None = None  # there is no training
        self.moments: list[PositionMoments] = []
        self.descriptors: list[PositionDescriptor] = []

    def update(self, seen: Seen) -> None:
        """Take in a batch of normal images."""
        maps = self.aligned(seen)
        self.moments = self.moments or [PositionMoments() for _ in maps]
        for moments, features in zip(self.moments, maps, strict=True):
            moments.update(features)

    def finish(self) -> None:
        """Make the descriptors of what was taken in."""
        settings = self.settings
        self.descriptors = [moments.describe(settings.borrowed, settings.shared, settings.ridge) for moments in self.moments]
        self.moments = []

    def aligned(self, seen: Seen) -> list[Tensor]:
        """The maps on one grid, twice as fine as that of the coarsest: between two positions lies their mean."""
        rows, columns = (CELL * side for side in seen.maps[-1].shape[-2:])
        return [F.interpolate(features_last(each), (rows, columns), mode="bilinear") for each in seen.maps]

    @torch.no_grad()
    def look(self, pixels: Tensor, seen: Seen | None) -> Look:
        """Distance to what is usual, at each pixel; an image's score is that of its worst place."""
        assert seen is not None
        distances = [
            mahalanobis(features, descriptor)
            for features, descriptor in zip(self.aligned(seen), self.descriptors, strict=True)
        ]
        distance = steadied(torch.stack(distances).mean(dim=0), self.settings.steadied).sqrt()
        heat = resize(distance, (pixels.shape[-2], pixels.shape[-1]), "bilinear", self.settings.smoothing)
        peak = heat.flatten(1).amax(dim=1)
        return Look([(peak, 1.0)], {"distance": peak}, heat)

    look_at_once = look  # it needs little memory

    def latents(self, pixels: Tensor, seen: Seen | None) -> Tensor:  # noqa: ARG002
        """What the backbone sees of images on the whole: (b, channels of the blocks)."""
        assert seen is not None
        return torch.cat([each.mean(dim=(2, 3)) for each in seen.maps], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """All that was learnt, the triangles of the whiteners packed."""
        packed = {}
        for number, descriptor in enumerate(self.descriptors):
            row, column = _triangle(descriptor.whitener.shape[-1])
            packed[f"{number}.mean"] = descriptor.mean.contiguous()
            packed[f"{number}.whitener"] = descriptor.whitener[:, row, column]
        return packed

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:
        """The reverse of `tensors`; what does not fit raises an error that names the file."""
        count = len(tensors) // 2
        if not count:
            raise UserError(f"{path}: damaged: its pixel scale is empty")
        self.descriptors = [_unpacked(tensors[f"{n}.mean"], tensors[f"{n}.whitener"]) for n in range(count)]


def steadied(distance: Tensor, power: float) -> Tensor:
    """Squared distances (b, rows, columns) of each image, divided by a power of what is usual in its own quiet quarter.

    Light, focus and the camera's noise move a whole image away from the normal ones; a defect moves a place.
    """
    quiet = distance.flatten(1).quantile(QUIET, dim=1).clamp(min=1e-6)
    return distance / quiet.pow(power).view(-1, 1, 1)


def _unpacked(mean: Tensor, packed: Tensor) -> PositionDescriptor:
    size, rows, columns = mean.shape
    row, column = _triangle(size)
    cells = rows * columns // CELL**2
    if packed.shape != (cells, len(row)) or rows % CELL or columns % CELL:
        raise ValueError("a pixel descriptor of the wrong shape")
    whitener = torch.zeros(cells, size, size)
    whitener[:, row, column] = packed
    return PositionDescriptor(features_last(mean), whitener)


def _triangle(size: int) -> tuple[Tensor, Tensor]:
    row, column = torch.tril_indices(size, size)
    return row, column
