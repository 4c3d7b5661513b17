"""Images to learn from and to calibrate with, decoded and checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import torch

from igd.data.geometry import Geometry
from igd.data.image_set import ImageSet, check_one_size, decode
from igd.data.sources import Source
from igd.data.tile_set import TileSet, sample_tiles
from igd.data.tiles import Tiling
from igd.errors import UserError
from igd.inference.mismatch import counted_lines, scaled_to
from igd.progress import Progress
from igd.training.parameters import Parameters
from igd.training.plan import FEWEST, Plan

FLAT = 1.0  # grey levels, the spread of pixels in an image that shows nothing


def read_training_images(
    source: Source, plan: Plan, parameters: Parameters, progress: Progress
) -> ImageSet:
    """Decode the images, say which were left out, and refuse a set that can't be trained on."""
    if plan.tiling:
        images: ImageSet = sample_tiles(
            source,
            plan.geometry,
            plan.tiling,
            plan.tiles_each,
            parameters.seed,
            strict=parameters.strict,
            progress=progress,
        )
    else:
        images = decode(
            source, plan.geometry, strict=parameters.strict, progress=progress, learning=True
        )
    if parameters.fit_to is None:
        check_one_size(images, source)
    for name, size in zip(images.names, images.sizes, strict=True):
        plan.geometry.check(name, size, plan.smallest_side)
    if len(images) < FEWEST:
        raise UserError(
            f"{source.described}: only {len(images)} of {len(source)} images can be read; 3 are "
            f"needed"
        )
    _check_contrast(images, source)
    _check_variety(images, source)
    _say_scaled(images, plan.geometry, progress)
    return images


def read_calibration_images(
    source: Source,
    geometry: Geometry,
    channels: int,
    smallest_side: int,
    strict: bool,
    progress: Progress,
    tiling: Tiling | None = None,
) -> ImageSet:
    """Decode images that a model did not learn from, as it will decode those it predicts."""
    mode = "RGB" if channels == 3 else "L"
    as_predicted = replace(source, read=lambda number: source.read(number).convert(mode))
    if tiling:
        images: ImageSet = sample_tiles(
            as_predicted, geometry, tiling, 1, 0, strict=strict, progress=progress
        )
    else:
        images = decode(as_predicted, geometry, strict=strict, progress=progress)
    for name, size in zip(images.names, images.sizes, strict=True):
        geometry.check(name, size, smallest_side)
    _check_contrast(images, source)
    _say_scaled(images, geometry, progress)
    return images


def _say_scaled(images: ImageSet, geometry: Geometry, progress: Progress) -> None:
    """Say how many images are not of the size that the region of interest was given for."""
    roi = geometry.roi
    others = sum(size != roi.frame for size in images.sizes) if roi else 0
    if roi and others:
        progress.say(*counted_lines(Counter({scaled_to(roi): others}), len(images)))


def _check_contrast(images: ImageSet, source: Source) -> None:
    """Refuse images with nothing on them: whatever is learnt from them calls anything normal."""
    if isinstance(images, TileSet):  # of which a few tiles may well be background
        flat = sum(spread < FLAT for spread in images.spreads)
    else:
        flat = sum(
            float(images.pixels[torch.tensor([number])].float().std()) < FLAT
            for number in range(len(images))
        )
    if 2 * flat > len(images):
        raise UserError(
            f"{source.described}: {flat} of {len(images)} images are of one grey or colour all "
            f"over, so there is nothing to learn; is the lens covered, or the exposure wrong?"
        )


def _check_variety(images: ImageSet, source: Source) -> None:
    """Refuse copies of one image: they don't say how normal images differ."""
    if isinstance(images, TileSet):
        return
    first, *others = torch.arange(len(images)).split(1)
    if all(torch.equal(images.pixels[each], images.pixels[first]) for each in others):
        raise UserError(
            f"{source.described}: all {len(images)} images are the same to the pixel, so nothing "
            f"says how normal ones differ; give images of several parts"
        )
