"""The fitted state: what `fit` makes, the model file holds, export reads and `load` returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from igd.backbones.features import Features, FrozenBackbone
from igd.data.geometry import Geometry
from igd.data.image_set import ImageSet
from igd.data.tile_set import TileSet
from igd.data.tiles import Tiling
from igd.inference.conformal import Calibration
from igd.method.objective import Objective
from igd.rng import spread
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.base import Scale, ScaleOutput
from igd.scales.fusion import Fusion
from igd.scales.region_mask import RegionMask
from igd.training.calibration_history import CalibrationRecord

EXAMPLES = 8  # images that a model file keeps


class Scored(NamedTuple):
    """Images at the model's size, scored."""

    score: Tensor  # (b,)
    map: Tensor  # (b, rows, columns)
    terms: dict[str, Tensor]  # of each scale, (b,) each


@dataclass(frozen=True)
class FittedState:
    """All that a detector learnt, and where it came from."""

    parameters: dict[str, Any]  # of the constructor
    geometry: Geometry
    channels: int
    objective: Objective
    backbone: FrozenBackbone | None
    scales: list[Scale]
    fusion: Fusion
    calibration: Calibration
    # Some of the calibration images, at the model's size: whatever is made of the model is tried on
    # them.
    examples: Tensor
    example_scores: Tensor  # what it said of them when it was made
    provenance: dict[str, Any]
    former: tuple[CalibrationRecord, ...] = ()  # calibrations before this one, the oldest first
    tiling: Tiling | None = None  # how images are cut; None: each is read as a whole
    # Of examples that are tiles, where each place has a descriptor of its own.
    example_places: Tensor | None = None

    @cached_property
    def region(self) -> RegionMask | None:
        """Of an image that counts; None: all of it."""
        return RegionMask.of(self.geometry)

    @property
    def trained(self) -> bool:
        """Whether any scale was trained with the objective; the others have a closed form."""
        return any(isinstance(scale, AutoEncoderScale) for scale in self.scales)

    def score(self, pixels: Tensor, places: Tensor | None = None) -> Scored:
        """Score, map and terms of 8-bit images (b, c, h, w), or of tiles, at these places of
        their images where that matters. Every score and every map comes from here.
        """
        features = self.features(pixels, places)
        return self.fused([scale.score(pixels, features) for scale in self.scales])

    def forward(self, pixels: Tensor, places: Tensor | None = None) -> Scored:
        """The same in PyTorch alone and in one piece: what export traces."""
        features = self.backbone.traced(pixels) if self.backbone else None
        if features is not None and places is not None:
            features = replace(features, places=places)
        return self.fused([scale.forward(pixels, features) for scale in self.scales])

    def fused(self, outputs: list[ScaleOutput]) -> Scored:
        """What all scales say together."""
        named = zip((scale.settings.name for scale in self.scales), outputs, strict=True)
        terms = {
            f"{name}.{term}": value
            for name, output in named
            for term, value in output.terms.items()
        }
        anomaly_map = self.fusion.map(outputs)
        if self.region is not None:
            anomaly_map = anomaly_map * self.region.mask
        return Scored(self.fusion.score(outputs), anomaly_map, terms)

    def features(self, pixels: Tensor, places: Tensor | None = None) -> Features | None:
        """One pass of the frozen backbone, which every scale reads from."""
        return replace(self.backbone(pixels), places=places) if self.backbone else None

    @torch.no_grad()
    def latents(self, pixels: Tensor) -> dict[str, Tensor]:
        """Where images lie in the space of each scale: (b, Z) each."""
        features = self.features(pixels)
        return {scale.settings.name: scale.latents(pixels, features) for scale in self.scales}

    @property
    def smallest_side(self) -> int:
        """Of an image in which the smallest window of some scale finds its place."""
        return min(scale.settings.smallest_side for scale in self.scales)


def examples_of(images: ImageSet, numbers: Tensor) -> tuple[Tensor, Tensor | None]:
    """Some of these images at the model's size or, of those in tiles, a tile of each and its
    place.
    """
    chosen = numbers[spread(len(numbers), EXAMPLES)]
    if not isinstance(images, TileSet):
        return images.pixels[chosen], None
    rows = chosen * images.each
    return images.pixels[rows], images.places[rows]
