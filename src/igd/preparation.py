"""What happens before training: which scales look at which square, which images can be used, which are held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from PIL import Image
from torch import Tensor

from igd.checkpoint import Checkpoint
from igd.data.decoding import ImageSet, check_one_size, decode
from igd.data.geometry import FITS, LARGEST_SIDE, Fit, Geometry
from igd.data.images import UnreadableImage
from igd.data.sources import Source
from igd.data.store import Pixels
from igd.errors import UserError
from igd.judging import check_large_enough
from igd.method.em import generator
from igd.pretraining import contrastive, distillation
from igd.pretraining.backbones import Backbone
from igd.pretraining.contrastive import Contrast
from igd.pretraining.distillation import Distillation
from igd.pretraining.encoders import load_encoder
from igd.pretraining.features import FrozenBackbone
from igd.pretraining.weights import load_backbone
from igd.progress import Progress
from igd.recipes import (
    LARGE_SIDE,
    PRETRAININGS,
    SMALL_LIMIT,
    SMALL_SIDE,
    AnyScale,
    PixelSettings,
    ScaleSettings,
    find_recipe,
)
from igd.scale import Scale

SMALLEST_SIDE = 8  # pixels of an image that a feature map says anything about
FEWEST = 3  # images: two to train on, for a pair to interpolate between, and one to calibrate with


class Parameters(Protocol):
    """What preparation reads of the detector's parameters; None leaves a choice to the recipe."""

    recipe: str
    scales: tuple[str, ...] | None
    image_size: int | None
    fit_to: Fit | None
    epochs: int | None
    steps: int | None
    batch_size: int | None
    learning_rate: float | None
    width: int | None
    seed: int
    strict: bool
    pretrain: str | None
    backbone: str
    weights: str | Path | None


def choose_scales(parameters: Parameters, source: Source) -> tuple[list[AnyScale], Geometry]:
    """The scales of the recipe for images of this size, with what the user set in place of the recipe's."""
    if parameters.fit_to is not None and parameters.fit_to not in FITS:
        raise UserError(f"images can't be fitted by {parameters.fit_to!r}; there are {', '.join(FITS)}")
    check_seed(parameters.seed)
    if len(source) < FEWEST:
        raise UserError(f"{source.described}: {len(source)} image(s) are too few; training needs at least 3, better 100")
    recipe = find_recipe(parameters.recipe)
    side = _choose_side(parameters.image_size, source)
    frozen = (parameters.pretrain or recipe.pretrain) != "scratch"
    if side <= SMALL_LIMIT:
        available = recipe.frozen_small if frozen else recipe.small
    else:
        available = recipe.frozen_large if frozen else recipe.large
    there = tuple(each.name for each in available)
    wanted = parameters.scales or tuple(name for name in there if name in recipe.default_scales) or there
    unknown = set(wanted) - {each.name for each in available}
    if unknown:
        names = ", ".join(each.name for each in available)
        raise UserError(f"no scale is called {', '.join(sorted(unknown))} for images of {side} pixels; there are {names}")
    settings = [_override(each, parameters) for each in available if each.name in wanted]
    for each in settings:
        if isinstance(each, ScaleSettings):
            Scale.check(each, side)
    return settings, Geometry(side, parameters.fit_to or "resize")


def check_seed(seed: int) -> None:
    if seed < 0:
        raise UserError(f"seed is {seed}; it must not be negative")


def read_training_images(
    source: Source, geometry: Geometry, settings: list[AnyScale], parameters: Parameters, progress: Progress
) -> ImageSet:
    """Decode the images, say which were left out, and refuse a set that can't be trained on."""
    images = decode(source, geometry, strict=parameters.strict, progress=progress)
    for message in images.skipped:
        progress.say(f"left out: {message}")
    if parameters.fit_to is None:
        check_one_size(images, source)
    for name, size in zip(images.names, images.sizes, strict=True):
        check_large_enough(name, size, smallest_side(settings))
    if len(images) < FEWEST:
        raise UserError(f"{source.described}: only {len(images)} of {len(source)} images can be read; 3 are needed")
    return images


def choose_held_out(count: int, share: float, seed: int) -> Tensor:
    """Which images are kept from training, for calibration: a mask (count,)."""
    if not 0 < share < 1:
        raise UserError(f"calibration is {share}; it is a share of the images, between 0 and 1")
    kept = min(max(1, round(share * count)), count - 2)
    mask = torch.zeros(count, dtype=torch.bool)
    mask[torch.randperm(count, generator=generator(seed, "hold out"))[:kept]] = True
    return mask


def smallest_side(settings: list[AnyScale]) -> int:
    """Of an image in which the smallest window of some scale finds its place."""
    return min(each.smallest_side if isinstance(each, ScaleSettings) else SMALLEST_SIDE for each in settings)


def _override(settings: AnyScale, parameters: Parameters) -> AnyScale:
    named = {name: getattr(parameters, name) for name in ("epochs", "steps", "batch_size", "learning_rate", "width")}
    own = {name: value for name, value in named.items() if value is not None}
    for name, value in own.items():
        if not 0 < value < float("inf"):
            raise UserError(f"{name} is {value}; it must be a positive number")
    if own.get("batch_size", 2) < 2:
        raise UserError("batch_size is 1; interpolation needs at least two images in a batch")
    if isinstance(settings, PixelSettings):
        return settings  # there is nothing to train
    width = own.pop("width", settings.width)
    if "epochs" in own:  # whole passes over the images, not the recipe's budget
        own = {"steps": None, "epoch_size": None, **own}
    return replace(settings, training=replace(settings.training, seed=parameters.seed, **own), width=width)


@dataclass(frozen=True)
class Origin:
    """Where the frozen backbone that scales see through comes from."""

    found: Backbone | None  # with ImageNet weights, or in a file
    learning: Distillation | Contrast | None  # from what was found, or from nothing; None: as it was found

    @property
    def described(self) -> dict[str, Any]:
        return {"weights": self.found and self.found.identity, "pretraining": self.learning and asdict(self.learning)}


def choose_origin(parameters: Parameters) -> Origin | None:
    """Where the backbone comes from; None where encoders learn from scratch."""
    wanted, fast = parameters.pretrain or find_recipe(parameters.recipe).pretrain, parameters.recipe == "fast"
    if wanted == "scratch":
        return None
    if wanted == "contrastive":
        return Origin(None, replace(contrastive.FAST if fast else Contrast(), seed=parameters.seed))
    if wanted in ("imagenet", "distill"):
        found = load_backbone(parameters.backbone, Path(parameters.weights) if parameters.weights else None)
        if wanted == "imagenet":
            return Origin(found, None)
        return Origin(found, replace(distillation.FAST if fast else Distillation(), seed=parameters.seed))
    if not Path(wanted).is_file():
        raise UserError(f"pretrain is {wanted!r}: neither {', '.join(PRETRAININGS)} nor a file")
    return Origin(load_encoder(Path(wanted)), None)


def make_backbone(
    origin: Origin,
    settings: list[AnyScale],
    side: int,
    pixels: Pixels,
    progress: Progress,
    stop: Callable[[], bool],
    saved: Checkpoint | None,
) -> FrozenBackbone:
    """The frozen backbone that the scales see through, trained if it is to learn."""
    found, learning = origin.found, origin.learning
    if isinstance(learning, Contrast):
        backbone = contrastive.contrast(pixels, learning, progress, stop, saved).encoder
    else:
        assert found is not None
        backbone = found
        if learning:
            teacher = FrozenBackbone(found, seen_side(side, found), (), vector=True)
            backbone = distillation.distil(teacher, pixels, learning, progress, stop, saved).encoder
    maps = any(isinstance(each, PixelSettings) or each.patch is not None for each in settings)
    vector = any(isinstance(each, ScaleSettings) and each.patch is None for each in settings)
    return FrozenBackbone(backbone, seen_side(side, backbone), backbone.kind.fine_blocks if maps else (), vector)


def seen_side(side: int, backbone: Backbone) -> int:
    """Side of the images that a backbone is shown; one trained on ImageNet's large images sees small ones enlarged."""
    if not backbone.kind.magnified:
        return side
    return 4 * side if side <= SMALL_LIMIT else 32 * round(1.25 * side / 32)


def _choose_side(image_size: int | None, source: Source) -> int:
    """The side of the model's square: the one asked for, or what the first image suggests."""
    side = image_size
    if side is None:
        side = SMALL_SIDE if min(_first_readable(source).size) <= SMALL_LIMIT else LARGE_SIDE
    if not 0 < side <= LARGEST_SIDE:
        raise UserError(f"image_size is {side}; it must lie between 1 and {LARGEST_SIDE}")
    return side


def _first_readable(source: Source) -> Image.Image:
    for number in range(len(source)):
        try:
            return source.read(number)
        except UnreadableImage as error:
            last = error
    raise UserError(f"{source.described}: none of the {len(source)} images can be read; the last: {last}")


def decode_for_pretraining(source: Source, image_size: int | None, progress: Progress) -> Pixels:
    """Images as an encoder is to see them: decoded to one square, whatever their sizes."""
    images = decode(source, Geometry(_choose_side(image_size, source), "resize"), progress=progress)
    for message in images.skipped:
        progress.say(f"left out: {message}")
    return images.pixels
