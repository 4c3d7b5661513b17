"""Learning from images in tiles.

Scales learn from a sample of tiles: forty images of twelve megapixels have half a billion pixels,
and moments are known long before all of them are read. Where position has a meaning, each place has
means of its own, over all images, and shares with the others how features vary around them: a
covariance for every place would make a file of gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from igd.backbones.features import Features, FrozenBackbone
from igd.data.geometry import Geometry
from igd.data.tile_set import TileSet
from igd.data.tiles import Tiling, Whole
from igd.files.checkpoint_file import stopped
from igd.inference.tiled import tile_batches
from igd.rng import spread
from igd.scales.base import FeatureScale
from igd.scales.patch_features import unit_features
from igd.scales.position import PositionScale
from igd.training.checkpoint import Controls
from igd.training.crossfit import Distances, deal_folds, learn

FINE = 1  # the number of the level whose features say whether position has a meaning
# Share of the variance of features that is left around the mean of their place, below which it has.
LEFT_BY_PLACE = 0.75
PLACED = 100  # images, at most, that the means of places are of
FOLDS = 5  # of images in tiles: each has many, and reading them anew takes longest
LARGEST_HALF = 60_000.0  # distance that is kept in half precision


def position_matters(places: Tensor, maps: Tensor) -> bool:
    """Whether features of tiles, (n, channels, rows, columns), differ clearly less from those of
    the same place in other images than from those of any place.

    Both variances are unbiased: where position has no meaning, they are equal.
    """
    features = unit_features([maps])
    found, group = places.unique(return_inverse=True)
    members = torch.bincount(group)
    if len(found) in (1, len(places)):
        return False
    sums = torch.zeros(len(found), *features.shape[1:]).index_add_(0, group, features)
    means = sums / members.view(-1, 1, 1, 1)
    within = (features - means[group]).square().sum() / (len(features) - len(found))
    total = (features - features.mean(dim=0)).square().sum() / (len(features) - 1)
    return bool(within < LEFT_BY_PLACE * total)


@dataclass(frozen=True)
class TileReader:
    """How images are read in tiles: cut, and shown to the backbone."""

    backbone: FrozenBackbone
    tiling: Tiling
    geometry: Geometry
    controls: Controls

    def features(self, pixels: Whole) -> Iterator[Features]:
        """Features of all tiles of an image, batch after batch."""
        for tiles, places in tile_batches(pixels, self.tiling, self.geometry):
            if self.controls.stop():
                raise stopped(self.controls.saved)
            own = None if self.tiling.size is None else torch.from_numpy(places)
            yield replace(self.backbone(torch.from_numpy(tiles)), places=own)

    @torch.no_grad()
    def distances(self, scales: Sequence[FeatureScale], pixels: Whole) -> Distances:
        """How far all tiles of an image are from what scales have learnt, in half precision."""
        batches = [[scale.distances(each) for scale in scales] for each in self.features(pixels)]
        return [
            [torch.cat(batch).clamp(max=LARGEST_HALF).half() for batch in zip(*parts, strict=True)]
            for parts in zip(*batches, strict=True)
        ]

    def measured(
        self, scales: Sequence[FeatureScale], images: TileSet, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Distances]]:
        """Images by number, and the distances of all their tiles."""
        for number, pixels in zip(numbers, images.wholes(numbers), strict=True):
            yield number, self.distances(scales, pixels)


class PlaceSums:
    """Sums over images of the features at each place: of each level (places, d, rows, columns)."""

    def __init__(self) -> None:
        self.images, self.levels = 0, list[Tensor]()

    def add(self, levels: Iterable[Tensor]) -> None:
        """Take in all tiles of an image."""
        new = list(levels)
        self.levels = [a + b for a, b in zip(self.levels, new, strict=True)] if self.images else new
        self.images += 1


def means_of(sums: Sequence[PlaceSums]) -> list[Tensor]:
    """The means of each place, of each level."""
    count = sum(each.images for each in sums)
    levels = zip(*(each.levels for each in sums), strict=True)
    return [torch.stack(level).sum(dim=0) / count for level in levels]


class TileLearner:
    """What scales learn from: features of some tiles of every image and, where places have their
    own, means of all.
    """

    def __init__(
        self,
        reader: TileReader,
        images: TileSet,
        folds: list[Tensor],
        features: Features,
        fresh: Callable[[], list[FeatureScale]],
        seed: int,
    ) -> None:
        self.reader, self.images, self.folds = reader, images, folds
        self.features = replace(features, places=images.places)
        self.fresh, self.seed = fresh, seed
        self.sums: list[PlaceSums] = []
        if reader.tiling.size is not None:
            (position,) = (each for each in fresh() if isinstance(each, PositionScale))
            self.sums = self._place_sums(position)

    def learn(self, scales: Sequence[FeatureScale], without: int | None = None) -> None:
        """Let scales learn from all images, or from those that are not in a fold."""
        kept = [part for fold, part in enumerate(self.folds) if fold != without]
        features = self.features
        if without is not None:
            features = features[self.images.rows(torch.cat(kept).sort().values)]
        own = [each for each in scales if self.sums and isinstance(each, PositionScale)]
        learn([each for each in scales if each not in own], features, self.seed)
        for each in own:
            means = means_of([part for fold, part in enumerate(self.sums) if fold != without])
            assert isinstance(each, PositionScale)
            each.learn_around(features, means)

    def cross_measured(self, wanted: Tensor) -> Iterator[tuple[int, Distances]]:
        """Those of the images that are wanted, each measured by scales that learnt from none of its
        fold.
        """
        for fold, part in enumerate(self.folds):
            numbers = part[torch.isin(part, wanted)].tolist()
            if numbers:
                scales = self.fresh()
                self.learn(scales, without=fold)
                yield from self.reader.measured(scales, self.images, numbers)

    def _place_sums(self, position: PositionScale) -> list[PlaceSums]:
        """Of the images of each fold, or of some of them where there are many."""
        each = max(1, PLACED // len(self.folds))
        numbered = [
            (fold, number)
            for fold, part in enumerate(self.folds)
            for number in part[spread(len(part), each)].tolist()
        ]
        wholes = self.images.wholes([number for _, number in numbered])
        progress, sums = self.reader.controls.progress, [PlaceSums() for _ in self.folds]
        for (fold, _), pixels in progress.track(
            zip(numbered, wholes, strict=True), len(numbered), "learning places"
        ):
            batches = [position.level_features(some) for some in self.reader.features(pixels)]
            sums[fold].add(torch.cat(level) for level in zip(*batches, strict=True))
        return sums


def folds_of(groups: Tensor, cross_fitted: bool, seed: int) -> list[Tensor]:
    """Images that are scored by a model without them; where others calibrate, all are one fold."""
    return deal_folds(groups, seed, FOLDS) if cross_fitted else [torch.arange(len(groups))]


def collected(
    measuring: Iterator[tuple[int, Distances]], count: int, reader: TileReader
) -> dict[int, Distances]:
    """Images that were measured, by number."""
    return dict(reader.controls.progress.track(measuring, count, "calibrating"))
