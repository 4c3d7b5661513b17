"""What is built for whom: which scales on images of which size, through which backbone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from igd.backbones.features import SMALL_LIMIT
from igd.cpu import require_bfloat16
from igd.data.geometry import LARGEST_SIDE, Geometry
from igd.data.sources import Source
from igd.data.tiles import MOST_OVERLAP, OVERLAP, Tiling, check_tile_fits
from igd.errors import UserError
from igd.method.objective import Objective
from igd.progress import Progress
from igd.scales.recipes import (
    FORMER_NAMES,
    LARGE_SIDE,
    SMALL_SIDE,
    TILED_LEVELS,
    Recipe,
    find_objective,
    find_recipe,
)
from igd.scales.scale_settings import (
    GRAIN,
    MAPLESS,
    SHALLOW,
    AutoEncoderSettings,
    EmbeddingSettings,
    PositionSettings,
    ScaleSettings,
    check_side,
    without_effect_left_out,
)
from igd.training.backbone_origin import Origin, choose_origin
from igd.training.parameters import Parameters, check_seed
from igd.training.refusals import (
    refuse_smoothing_beyond,
    refuse_unbounded_sum,
    refuse_with_tiles,
    refuse_without_effect,
)
from igd.training.roi_and_alignment import aimed, first_readable, usual_size

# Images, at most, by scales on features: more teach little and take memory. Small ones take less of
# it, and the Gaussian of their one long vector needs more of them.
LEARNT_FROM, LEARNT_FROM_SMALL = 600, 4000
HELD_OUT = 0.2  # share of the images that calibrate a detector which is not cross-fitted
FEWEST = 3  # images: two to train on, for a pair to interpolate between, and one to calibrate with
SMALLEST_TILE = 96
TILE_BYTES = 250_000_000  # of tiles that are learnt from, with their features
BYTES_PER_PIXEL = 6.2  # of a tile: three channels, and its features in half precision
FEWEST_TILES = 60


@dataclass(frozen=True)
class Plan:
    """What a training builds."""

    geometry: Geometry
    settings: list[ScaleSettings]
    objective: Objective
    origin: Origin | None  # of the frozen backbone; None: encoders learn from scratch
    calibrated: bool  # whether parts are scaled by what held-out images say
    held_out: float | None  # share of the images; None: cross-fitted, every image is learnt from
    tiling: Tiling | None = None  # how images are cut; None: each is read as a whole
    tiles_each: int = 1  # of an image, that are learnt from

    @property
    def on_features(self) -> bool:
        """Whether all scales learn from features of all images at once, and none is trained."""
        return not any(isinstance(each, AutoEncoderSettings) for each in self.settings)

    @property
    def smallest_side(self) -> int:
        """Of an image in which the smallest window of some scale finds its place."""
        return min(each.smallest_side for each in self.settings)

    @property
    def learnt_from(self) -> int:
        """Images, at most, that scales on features learn from."""
        return most_learnt_from(self.geometry.side, self.tiling is not None)

    def described(self, parameters: dict[str, Any], version: str) -> dict[str, Any]:
        """All that the result depends on, beside the images."""
        return {
            "made_by": version,
            "parameters": parameters,
            "objective": asdict(self.objective),
            "scales": [asdict(each) for each in self.settings],
            "backbone": self.origin and self.origin.described,
        }


def make_plan(parameters: Parameters, source: Source, progress: Progress | None = None) -> Plan:
    """The recipe for images of this size, with what the user set in place of the recipe's."""
    check_seed(parameters.seed)
    if len(source) < FEWEST:
        raise UserError(
            f"{source.described}: {len(source)} image(s) are too few; training needs at least 3, "
            f"better 100"
            + ("; if these are several, reshape your data to images" if source.single else "")
        )
    recipe, objective = find_recipe(parameters.recipe), find_objective(parameters.objective)
    tiling = choose_tiling(parameters)
    asked = parameters.tile if parameters.image_size is None else parameters.image_size
    side = choose_side(asked, source)
    settings = choose_scales(parameters, recipe, side)
    refuse_without_effect(parameters, recipe, settings, side)
    combination = parameters.combination or recipe.combination
    calibrated = combination == "calibrated"
    if tiling:
        refuse_with_tiles(parameters, settings, calibrated)
    refuse_unbounded_sum(settings, calibrated)
    geometry = aimed(Geometry(side, parameters.fit_to or "resize"), parameters, source, progress)
    trained = any(isinstance(each, AutoEncoderSettings) for each in settings)
    if not (trained or tiling or side <= SMALL_LIMIT or geometry.fit == "crop"):
        differ = parameters.fit_to is not None
        geometry = geometry.in_proportion(geometry.frame or usual_size(source, differ))
    refuse_smoothing_beyond(settings, geometry.shape)
    origin = choose_origin(parameters, recipe, side)
    if origin and origin.turned:
        settings = [
            replace(each, turns=True) if isinstance(each, EmbeddingSettings) else each
            for each in settings
        ]
    settings = [
        without_effect_left_out(each, objective, origin is not None, calibrated)
        for each in settings
    ]
    most = most_learnt_from(side, tiling is not None)
    few = len(source) <= min(most, LEARNT_FROM)
    learns = bool(origin and origin.learning)
    held_out = choose_held_out_share(parameters, settings, calibrated, few, learns)
    each = choose_tiles_each(tiling, most, source) if tiling else 1
    if parameters.device != "cuda":
        require_bfloat16(parameters.precision)
    return Plan(geometry, settings, objective, origin, calibrated, held_out, tiling, each)


def most_learnt_from(side: int, tiled: bool) -> int:
    """Images, at most, that scales on features learn from; of tiled ones, tiles."""
    if not tiled:
        return LEARNT_FROM_SMALL if side <= SMALL_LIMIT else LEARNT_FROM
    return min(LEARNT_FROM, max(FEWEST_TILES, int(TILE_BYTES / (BYTES_PER_PIXEL * side**2))))


def choose_tiling(parameters: Parameters) -> Tiling | None:
    """How images are cut, where they are."""
    if parameters.tile is None:
        return None
    overlap = OVERLAP if parameters.overlap is None else parameters.overlap
    if not SMALLEST_TILE <= parameters.tile <= LARGEST_SIDE:
        raise UserError(
            f"tile is {parameters.tile}; it must lie between {SMALLEST_TILE} and {LARGEST_SIDE}"
        )
    if not 0 <= overlap <= MOST_OVERLAP:
        raise UserError(
            f"overlap is {overlap:g}; it is a share of a tile's side, between 0 and {MOST_OVERLAP}"
        )
    return Tiling(parameters.tile, overlap)


def choose_tiles_each(tiling: Tiling, most: int, source: Source) -> int:
    """How many tiles of each image are learnt from: `most` of all together, or one of each."""
    first = first_readable(source)
    check_tile_fits(source.described, first.size, tiling)
    return max(1, min(most // len(source), len(tiling.boxes(*first.size))))


def choose_held_out_share(
    parameters: Parameters,
    settings: list[ScaleSettings],
    calibrated: bool,
    few: bool,
    learns: bool,
) -> float | None:
    """None where scales are fitted fast enough to score every image by a model that did not learn
    from it, and images are few enough to be worth it. An encoder that learns would have learnt
    from them all, and knows what it has seen.
    """
    trained = learns or any(isinstance(each, AutoEncoderSettings) for each in settings)
    if parameters.calibration is None and calibrated and not trained and few:
        return None
    return HELD_OUT if parameters.calibration is None else parameters.calibration


def choose_side(image_size: int | None, source: Source) -> int:
    """The side of the model's square: the one asked for, or what the first image suggests."""
    side = image_size
    if side is None:
        side = SMALL_SIDE if min(first_readable(source).size) <= SMALL_LIMIT else LARGE_SIDE
    if not 0 < side <= LARGEST_SIDE:
        raise UserError(f"image_size is {side}; it must lie between 1 and {LARGEST_SIDE}")
    return side


def choose_scales(parameters: Parameters, recipe: Recipe, side: int) -> list[ScaleSettings]:
    """The scales asked for, or the recipe's, among those that there are for a square of this
    side.
    """
    frozen = (parameters.pretrain or recipe.pretrain) != "scratch"
    if side <= SMALL_LIMIT:
        available = recipe.frozen_small if frozen else recipe.small
    else:
        available = recipe.frozen_large if frozen else recipe.large
    names = tuple(each.name for each in available)
    asked = tuple(FORMER_NAMES.get(name, name) for name in parameters.scales or ())
    usual = (*recipe.default_scales, *((GRAIN,) if parameters.tile else ()))
    wanted = asked or tuple(name for name in names if name in usual) or names
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        there = ", ".join(names)
        raise UserError(
            f"no scale is called {', '.join(unknown)} for images of {side} pixels; there are "
            f"{there}"
        )
    if set(wanted) <= set(MAPLESS):
        raise UserError(
            f"the scale {wanted[0]} has no map; add position, such as --scales {wanted[0]},position"
        )
    settings = [_override(each, parameters) for each in available if each.name in wanted]
    if parameters.tile:
        settings = [
            replace(each, levels=TILED_LEVELS)
            if isinstance(each, PositionSettings) and set(SHALLOW) <= set(each.maps)
            else each
            for each in settings
        ]
    if len(settings) == 1 and isinstance(settings[0], PositionSettings):
        settings = [replace(settings[0], scored=True)]
    for each in settings:
        if isinstance(each, AutoEncoderSettings):
            check_side(each, side)
    return settings


def _override(settings: ScaleSettings, parameters: Parameters) -> ScaleSettings:
    own = parameters.changed("epochs", "steps", "batch_size", "learning_rate", "width")
    for name, value in own.items():
        if not 0 < value < float("inf"):
            raise UserError(f"{name} is {value}; it must be a positive number")
    if own.get("batch_size", 2) < 2:
        raise UserError("batch_size is 1; interpolation needs at least two images in a batch")
    if not isinstance(settings, AutoEncoderSettings):
        return settings  # there is nothing to train
    width = own.pop("width", settings.width)
    if "epochs" in own:  # whole passes over the images, not the recipe's budget
        own = {"steps": None, "epoch_size": None, **own}
    return replace(
        settings, training=replace(settings.training, seed=parameters.seed, **own), width=width
    )
