"""Where: a Gaussian with a covariance at each position of a frozen backbone's feature maps.

A relative of PaDiM (Defard et al., 2021), and what the paper's last sentence plans as a pixel-wise
Gaussian descriptor. Features of a position have unit length; each level of the backbone is a part
of the score by itself: fine ones find what is small, deep ones what does not belong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from igd.backbones.features import Features
from igd.errors import UserError
from igd.scales.base import FeatureScale, ScaleOutput, logarithms
from igd.scales.patch_features import log_map, log_peak, unit_features
from igd.scales.position_moments import (
    Cell,
    PositionDescriptor,
    PositionMoments,
    features_last,
    mahalanobis,
    unpacked,
)
from igd.scales.region_mask import RegionMask, counted
from igd.scales.scale_settings import Level, PositionSettings

AT_ONCE = 64  # images, at most, whose features are held as floats while it learns,
VALUES_AT_ONCE = 5_000_000  # and no more values of theirs than these


class PositionScale(FeatureScale):
    """A descriptor for each level."""

    settings: PositionSettings

    def __init__(self, settings: PositionSettings) -> None:
        self.settings = settings
        self.descriptors: list[PositionDescriptor] = []

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        self._describe(self._moments(features, self._none(features)))

    def statistics(self, features: Features) -> list[PositionMoments]:
        return list(self._moments(features, self._none(features)))

    def learn_without(
        self,
        features: Features,
        held_out: Tensor,
        statistics: list[PositionMoments],
        rng: torch.Generator,  # noqa: ARG002
    ) -> None:
        """Takes the moments of a few images out of those of all: most of the work of learning is to
        add them up.
        """
        some = features[held_out]
        taken_out = self._moments(some, self._none(some))
        self._describe(each.without(own) for each, own in zip(statistics, taken_out, strict=True))

    def learn_around(self, features: Features, means: list[Tensor]) -> None:
        """Learn from tiles at known places, of which each has means of its own, for each level
        (places, d, rows, columns). All places share how features vary around them.
        """
        self._describe(self._moments(features, self._none(features), means), means)

    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:  # noqa: ARG002
        """Exact, but for the half precision in which descriptors are kept."""
        former = [
            PositionMoments.behind(each, count, *self._shrinkage) for each in self.descriptors
        ]
        self._describe(self._moments(features, former))

    @property
    def _shrinkage(self) -> tuple[float, float, float]:
        settings = self.settings
        return settings.neighbour_shrinkage, settings.global_shrinkage, settings.ridge

    def _none(self, features: Features) -> list[PositionMoments]:
        """Of each level, the moments of no image."""
        grids = [features.maps[level.maps[0]] for level in self.settings.levels]
        levels = zip(self.settings.levels, grids, strict=True)
        return [PositionMoments(_cell(*each)) for each in levels]

    def _moments(
        self,
        features: Features,
        started: list[PositionMoments],
        means: list[Tensor] | None = None,
    ) -> Iterator[PositionMoments]:
        """The moments of each level, these images taken in; around the means of their places, where
        those have their own. Level after level: they are large.
        """
        for number, (level, moments) in enumerate(zip(self.settings.levels, started, strict=True)):
            own = None if means is None else means[number]
            indices = torch.arange(features.images) if features.places is None else features.places
            maps = [features.maps[number] for number in level.maps]
            values = sum(math.prod(each.shape[1:]) for each in maps)
            at_once = max(1, min(AT_ONCE, VALUES_AT_ONCE // values))
            for some in zip(
                indices.split(at_once), *(each.split(at_once) for each in maps), strict=True
            ):
                found = _level_features(list(some[1:]), level)
                moments.update(found if own is None else found - own[some[0]])
            yield moments

    def _describe(
        self, every: Iterable[PositionMoments], means: list[Tensor] | None = None
    ) -> None:
        """The descriptor of each level's moments."""
        self.descriptors = []
        for number, moments in enumerate(every):
            own = None if means is None else means[number]
            inside = _cells_inside(self.region, moments.mean, moments.cell)
            described = moments.describe(*self._shrinkage, inside=inside)
            mean = described.mean if own is None else described.mean + own
            # As the file holds it: what is loaded scores as what was learnt.
            mean, whitener = (_halved(each) for each in (mean, described.whitener))
            self.descriptors.append(PositionDescriptor(features_last(mean), whitener, moments.cell))

    def level_features(self, features: Features) -> list[Tensor]:
        """What the descriptor of each level is of: (b, d, rows, columns) each."""
        return [
            _level_features([features.maps[n] for n in level.maps], level)
            for level in self.settings.levels
        ]

    def distances(self, features: Features) -> list[Tensor]:
        return [
            mahalanobis(own, descriptor.at(features.places))
            for own, descriptor in zip(self.level_features(features), self.descriptors, strict=True)
        ]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:
        settings = self.settings
        parts = [log_peak(each, settings.top, self.region) for each in distances]
        terms = {level.name: part for level, part in zip(settings.levels, parts, strict=True)}
        maps = [log_map(each, size, settings.smoothing, self.region) for each in distances]
        weights = [level.map_weight for level in settings.levels]
        counted = parts if settings.scored else []
        return ScaleOutput(counted, [1.0] * len(counted), terms, maps, weights, logarithms(counted))

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        """The mean of each image's features over its positions: (b, channels of the blocks)."""
        assert features is not None
        return torch.cat([counted(each, self.region).mean(dim=2) for each in features.maps], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        return {
            f"{number}.{name}": value.half()
            for number, descriptor in enumerate(self.descriptors)
            for name, value in descriptor.packed().items()
        }

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:
        levels = self.settings.levels
        if len(tensors) != 2 * len(levels):
            raise UserError(f"{path}: damaged: its {self.settings.name} scale is not complete")
        self.descriptors = [
            unpacked(mean, tensors[f"{number}.whitener"], _cell(level, mean))
            for number, level in enumerate(levels)
            for mean in (tensors[f"{number}.mean"],)
        ]


def _cell(level: Level, grid: Tensor) -> Cell:
    """Rows and columns of a cell; a side of odd length can't be divided."""
    high, wide = (1 if length % level.cell else level.cell for length in grid.shape[-2:])
    return high, wide


def _cells_inside(region: RegionMask | None, grid: Tensor, cell: Cell) -> Tensor | None:
    """The numbers of the cells of a grid (..., rows, columns) with a position that counts."""
    if region is None:
        return None
    inside = torch.zeros(1, *grid.shape[-2:])
    inside.view(-1)[region.positions(*grid.shape[-2:])] = 1
    return F.max_pool2d(inside, cell).flatten().nonzero().flatten()


def _halved(values: Tensor) -> Tensor:
    """Values as half precision holds them; none is infinite there."""
    largest = torch.finfo(torch.half).max
    return values.clamp(-largest, largest).half().float().contiguous()


def _level_features(maps: list[Tensor], level: Level) -> Tensor:
    """The features of a level, (b, channels, rows, columns): of unit length, pooled if it says so.

    Pooling counts zeros beyond the edge: means of fewer positions would be noisier there, and
    every image's largest distance would lie at its edge.
    """
    together = features_last(unit_features(maps))
    return F.avg_pool2d(together, 3, 1, 1) if level.pooled else together
