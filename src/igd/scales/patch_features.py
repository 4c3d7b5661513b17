"""Features of patches: of unit length in each block; and distances as scores and maps."""

from __future__ import annotations

import torch
from torch import Tensor

from igd.ops.filters import resize
from igd.scales.region_mask import RegionMask, counted, extended

SMALLEST = 1e-6  # distance: logarithms stay finite
SHORTEST = 1e-12  # vector that still gets unit length


def unit_features(maps: list[Tensor]) -> Tensor:
    """Maps of blocks with one grid, each position of each block of unit length, side by side:
    (b, channels of all, rows, columns).
    """
    return torch.cat([_of_unit_length(each.float()) for each in maps], dim=1)


def _of_unit_length(feature: Tensor) -> Tensor:
    """`F.normalize` over the channels (b, c, ...), which takes five times as long on a CPU."""
    return feature * feature.square().sum(dim=1, keepdim=True).clamp(min=SHORTEST**2).rsqrt()


def log_peak(distance: Tensor, top: int, region: RegionMask | None = None) -> Tensor:
    """The logarithm of the mean of the `top` largest distances of an image: (b, rows, columns) ->
    (b,). One position may be large by chance; a defect is rarely one position.
    """
    inside = counted(distance, region)
    return (inside.topk(min(top, inside.shape[1]), dim=1).values.mean(dim=1) + SMALLEST).log()


def log_map(
    distance: Tensor, size: tuple[int, int], smoothing: float, region: RegionMask | None = None
) -> Tensor:
    """The logarithm of distances (b, rows, columns), enlarged and smoothed."""
    return resize((extended(distance, region) + SMALLEST).log(), size, "bilinear", smoothing)


def drawn_patches(
    maps: list[Tensor],
    most: int,
    rng: torch.Generator,
    region: RegionMask | None = None,
    images: Tensor | None = None,
) -> Tensor:
    """Patches of all images, or of those with these numbers, drawn at random: (n, d)."""
    count, _, rows, columns = maps[0].shape
    images = torch.arange(count) if images is None else images
    inside = torch.arange(rows * columns) if region is None else region.positions(rows, columns)
    numbers = torch.randperm(len(images) * len(inside), generator=rng)[:most]
    image, position = images[numbers // len(inside)], inside[numbers % len(inside)]
    picked = [each.flatten(2)[image, :, position].float() for each in maps]
    return unit_features([each[:, :, None, None] for each in picked]).flatten(1)
