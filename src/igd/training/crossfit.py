"""Every training image scored by a model that did not learn from it.

The images are dealt into folds; for each, the scales learn from the others and measure this one.
Nothing has to be held out: the model that is used learns from all images, and its threshold comes
from all of them. Its images were measured by models of fewer images, which are no better, so that
the realised rate of false alarms is at most about the promised one; unlike a held-out share's, that
promise has no proof for every finite number of images (Barber et al., 2021, have one for twice the
rate).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.progress import Progress
from igd.rng import generator
from igd.scales.base import FeatureScale, ScaleOutput

FOLDS = 10  # the more, the closer their models are to the final one, and the threshold to its rate
AT_ONCE = 16  # images measured together

Distances = list[list[Tensor]]  # of each scale, of each of its parts, of all images
# Scales, the features of all images, the numbers of those not to learn from, and the seed.
Teach = Callable[[Sequence[FeatureScale], Features, Tensor, int], None]
# The scales of a fold, the numbers of its images and their distances.
Watch = Callable[[list[FeatureScale], Tensor, Distances], None]


def learn(scales: Sequence[FeatureScale], features: Features, seed: int) -> None:
    """Let scales learn from the features of normal images."""
    for scale in scales:
        scale.learn(features, generator(seed, scale.settings.name))


def leaving_out(scales: Sequence[FeatureScale], features: Features) -> Teach:
    """How scales like these learn from all images but some; statistics of all images are taken
    once for all folds.
    """
    statistics = [scale.statistics(features) for scale in scales]

    def teach(
        scales: Sequence[FeatureScale], features: Features, held_out: Tensor, seed: int
    ) -> None:
        for scale, own in zip(scales, statistics, strict=True):
            scale.learn_without(features, held_out, own, generator(seed, scale.settings.name))

    return teach


def deal_folds(groups: Tensor, seed: int, folds: int = FOLDS) -> list[Tensor]:
    """The numbers of the images in each fold; images of one group, by its number, are in one."""
    dealt = torch.randperm(int(groups.max()) + 1, generator=generator(seed, "folds"))
    order = dealt.argsort()[groups].argsort(stable=True)
    return [
        order[torch.isin(groups[order], fold)]
        for fold in dealt.tensor_split(min(folds, len(dealt)))
    ]


def cross_fit(
    fresh: Callable[[], list[FeatureScale]],
    features: Features,
    seed: int,
    progress: Progress,
    groups: Tensor | None = None,
    teach: Teach | None = None,
    on_first: Watch | None = None,
    between_folds: Callable[[], None] = lambda: None,
) -> Distances:
    """Distances of every image to what scales learnt from the images of the other folds. Images of
    one group, by its number, are in one fold. `on_first` is told of the first fold, and
    `between_folds` may stop.
    """
    count = features.images
    groups = torch.arange(count) if groups is None else groups
    folds = deal_folds(groups, seed)
    teach = teach or leaving_out(fresh(), features)
    measured: list[Distances] = []
    for held_out in progress.track(folds, count, "cross-fitting", len):
        between_folds()
        scales = fresh()
        teach(scales, features, held_out, seed)
        measured.append(distances_of(scales, features[held_out]))
        if on_first and len(measured) == 1:
            on_first(scales, held_out, measured[0])
    back = torch.cat(folds).argsort()
    return [
        [torch.cat(folded)[back] for folded in zip(*parts, strict=True)]
        for parts in zip(*measured, strict=True)
    ]


def outputs_of(
    scales: Sequence[FeatureScale], distances: Distances, size: tuple[int, int]
) -> Iterator[list[ScaleOutput]]:
    """What scales say of images whose distances are known, batch after batch."""
    for indices in torch.arange(len(distances[0][0])).split(AT_ONCE):
        yield [
            scale.output([part[indices] for part in parts], size)
            for scale, parts in zip(scales, distances, strict=True)
        ]


@torch.no_grad()
def distances_of(scales: Sequence[FeatureScale], features: Features) -> Distances:
    """Distances of images to what scales have learnt."""
    batches = [[scale.distances(some) for scale in scales] for some in features.batches(AT_ONCE)]
    return [
        [torch.cat(batch) for batch in zip(*parts, strict=True)]
        for parts in zip(*batches, strict=True)
    ]
