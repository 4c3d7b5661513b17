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

FOLDS = 5
AT_ONCE = 16  # images measured together

Distances = list[list[Tensor]]  # of each scale, of each of its parts, of all images
Teach = Callable[[Sequence[FeatureScale], list[Tensor], int], None]


def learn(scales: Sequence[FeatureScale], levels: list[Tensor], seed: int) -> None:
    """Let scales learn from feature maps of normal images, float16 (n, channels, h, w) each."""
    for scale in scales:
        scale.learn(levels, generator(seed, scale.settings.name))


def cross_fit(
    fresh: Callable[[], list[FeatureScale]],
    levels: list[Tensor],
    seed: int,
    progress: Progress,
    groups: Tensor | None = None,
    teach: Teach = learn,
) -> Distances:
    """Distances of every image to what scales learnt from the images of the other folds. Images of
    one group, by its number, are in one fold.
    """
    count = len(levels[0])
    groups = torch.arange(count) if groups is None else groups
    dealt = torch.randperm(int(groups.max()) + 1, generator=generator(seed, "folds"))
    order = dealt.argsort()[groups].argsort(stable=True)
    folds = [
        order[torch.isin(groups[order], fold)]
        for fold in dealt.tensor_split(min(FOLDS, len(dealt)))
    ]
    measured: list[Distances] = []
    for held_out in progress.track(folds, count, "cross-fitting", len):
        others = torch.ones(count, dtype=torch.bool)
        others[held_out] = False
        scales = fresh()
        teach(scales, [level[others] for level in levels], seed)
        measured.append(distances_of(scales, [level[held_out] for level in levels]))
    back = order.argsort()
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
def distances_of(scales: Sequence[FeatureScale], levels: list[Tensor]) -> Distances:
    """Distances of images to what scales have learnt, float16 feature maps of each level."""
    batches: list[Distances] = []
    for some in zip(*(level.split(AT_ONCE) for level in levels), strict=True):
        features = Features([each.float() for each in some], None)
        batches.append([scale.distances(features) for scale in scales])
    return [
        [torch.cat(batch) for batch in zip(*parts, strict=True)]
        for parts in zip(*batches, strict=True)
    ]
