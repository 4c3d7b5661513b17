"""The scale of models made before 0.2: one Gaussian per cell of positions and block, on a finer
grid, divided by the image's own background. It scores as it did; nothing trains it any more.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from igd.backbones.features import Features
from igd.errors import UserError
from igd.ops.filters import resize
from igd.scales.base import Scale, ScaleOutput
from igd.scales.position_moments import (
    CELL,
    PositionDescriptor,
    features_last,
    mahalanobis,
    unpacked,
)
from igd.scales.scale_settings import PixelSettings

LOWER_QUANTILE = 0.25  # of an image's distances: even a large defect leaves so many positions alone


class PixelScale(Scale):
    """One descriptor for each block of the backbone."""

    settings: PixelSettings

    def __init__(self, settings: PixelSettings) -> None:
        self.settings = settings
        self.descriptors: list[PositionDescriptor] = []

    def aligned(self, features: Features) -> list[Tensor]:
        """The maps on one grid, twice as fine as that of the coarsest."""
        rows, columns = (CELL[0] * side for side in features.maps[-1].shape[-2:])
        return [
            F.interpolate(features_last(each), (rows, columns), mode="bilinear")
            for each in features.maps
        ]

    def forward(self, pixels: Tensor, features: Features | None) -> ScaleOutput:
        """Mahalanobis distance at each position; an image's score is its largest."""
        assert features is not None
        distances = [
            mahalanobis(each, descriptor)
            for each, descriptor in zip(self.aligned(features), self.descriptors, strict=True)
        ]
        together = torch.stack(distances).mean(dim=0)
        distance = normalised_by_background(together, self.settings.background_power).sqrt()
        size = (pixels.shape[-2], pixels.shape[-1])
        anomaly_map = resize(distance, size, "bilinear", self.settings.smoothing)
        peak = anomaly_map.flatten(1).amax(dim=1)
        return ScaleOutput([peak], [1.0], {"distance": peak}, [anomaly_map], [1.0])

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        """The mean of each image's features over its positions: (b, channels of the blocks)."""
        assert features is not None
        return torch.cat([each.mean(dim=(2, 3)) for each in features.maps], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        return {
            f"{number}.{name}": value
            for number, descriptor in enumerate(self.descriptors)
            for name, value in descriptor.packed().items()
        }

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:
        count = len(tensors) // 2
        if not count:
            raise UserError(f"{path}: damaged: its {self.settings.name} scale is empty")
        self.descriptors = [
            unpacked(tensors[f"{n}.mean"], tensors[f"{n}.whitener"], CELL) for n in range(count)
        ]


def normalised_by_background(distance: Tensor, power: float) -> Tensor:
    """Squared distances (b, rows, columns), divided by a power of their own lower quantile."""
    background = distance.flatten(1).quantile(LOWER_QUANTILE, dim=1).clamp(min=1e-6)
    return distance / background.pow(power).view(-1, 1, 1)
