"""The parameters of a training, spelled once: constructor, flags, model file and benchmark settings
are made of them.

Nothing here imports PyTorch, so that `igd --help` answers at once; a test holds the names below to
what they name.
"""

from __future__ import annotations

import operator
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from igd.errors import UserError

if TYPE_CHECKING:
    from igd.data.geometry import Fit
    from igd.method.objective import Objective
    from igd.pretraining.encoder_training import Precision
    from igd.scales.recipes import Combination, Recipe

TileDescriptors = Literal["shared", "own"]
RECIPES = ("fast", "paper", "authors")
OBJECTIVES = ("igd", "mse", "rec", "rec+gac", "dsvdd", "dsvdd+rec", "authors")
SCALES = ("global", "local", "position", "bank", "whole", "embedding", "grain")
FITS = ("resize", "crop", "letterbox")
PRETRAININGS = ("scratch", "imagenet", "distill", "contrastive", "rotation")
LEARNING = ("distill", "contrastive", "rotation")  # ways in which an encoder learns first
COMBINATIONS = ("calibrated", "sum")
TILE_DESCRIPTORS = ("shared", "own")
PRECISIONS = ("32-true", "bf16-mixed")
BACKBONE = "efficientnet_lite0"
RECIPES_OWN = "(default: the recipe's)"


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _parameter(default: Any, help: str, **flag: Any) -> Any:
    """A field with what its flag on the command line needs beside its name and default."""
    return field(default=default, metadata={"help": help, **flag})


@dataclass(eq=False, repr=False)
class Parameters:
    """What a user may set; None leaves the choice to the recipe."""

    recipe: str | Recipe = _parameter("fast", f"{', '.join(RECIPES)} (default: %(default)s)")
    objective: str | Objective = _parameter(
        "igd", f"{', '.join(OBJECTIVES)} (default: %(default)s)"
    )
    scales: tuple[str, ...] | None = _parameter(
        None, f"of {', '.join(SCALES)}, such as global,position {RECIPES_OWN}", type=_names
    )
    image_size: int | None = _parameter(
        None,
        "side of the square that the model reads, or that has as many pixels as the rectangle it "
        "reads of long images (default: 32 for small images, else 256; with --tile, the tile's)",
        type=int,
    )
    tile: int | None = _parameter(
        None,
        "for large images with small defects: read each in tiles of so many pixels a side",
        type=int,
    )
    overlap: float | None = _parameter(
        None,
        "share of a tile's side that it shares with the next, at least (default: 0.0625)",
        type=float,
    )
    tile_descriptors: TileDescriptors | None = _parameter(
        None,
        "whether all tiles share what is normal, or each place in the image has its own (default: "
        "what the images suggest)",
        choices=TILE_DESCRIPTORS,
    )
    fit_to: Fit | None = _parameter(
        None,
        "how images become that square or rectangle (default: resize)",
        flag="--fit",
        choices=FITS,
    )
    roi: str | Path | tuple[int, ...] | None = _parameter(
        None,
        "region of interest, the same in every image: x,y,width,height in pixels, or an image file "
        "that is black outside of it (default: the whole image)",
        metavar="REGION",
    )
    ignore: str | Path | tuple[str, ...] | None = _parameter(
        None,
        "what not to read, in the same forms; may be given several times",
        metavar="REGION",
        action="append",
    )
    align: bool = _parameter(
        False,
        "bring the part to its usual place first: shifts of up to 12 %% of the image and turns of "
        "up to 8 degrees",
        action="store_true",
    )
    epochs: int | None = _parameter(None, f"passes over the images {RECIPES_OWN}", type=int)
    steps: int | None = _parameter(
        None,
        f"batches to train on instead of epochs, not counting pre-training {RECIPES_OWN}",
        type=int,
    )
    batch_size: int | None = _parameter(None, f"images in a batch {RECIPES_OWN}", type=int)
    learning_rate: float | None = _parameter(None, f"of Adam {RECIPES_OWN}", type=float)
    width: int | None = _parameter(
        None, f"channels of the networks' first stage {RECIPES_OWN}", type=int
    )
    calibration: float | None = _parameter(
        None,
        "share of the images held out for the threshold (default: none where every image can be "
        "scored by a model that did not learn from it, else 0.2)",
        type=float,
    )
    max_false_alarms: float | None = _parameter(
        None, "accepted share of false alarms (default: 0.05, or what is possible)", type=float
    )
    exclude_odd: bool = _parameter(
        False,
        "leave out images that lie far above the rest, which may not be normal, and learn without "
        "them",
        action="store_true",
    )
    seed: int = _parameter(0, "of all random choices (default: %(default)s)", type=int)
    device: str = _parameter("cpu", "cpu or cuda (default: %(default)s)")
    precision: Precision = _parameter(
        "32-true", "of training (default: %(default)s)", choices=PRECISIONS
    )
    strict: bool = _parameter(
        False, "refuse unreadable images instead of leaving them out", action="store_true"
    )
    pretrain: str | None = _parameter(
        None, f"{', '.join(PRETRAININGS)}, or a file of igd pretrain {RECIPES_OWN}"
    )
    backbone: str = _parameter(BACKBONE, "network with ImageNet weights (default: %(default)s)")
    weights: str | Path | None = _parameter(
        None,
        "file with the backbone's weights, .safetensors or .pth (default: those installed)",
        type=Path,
    )
    combination: Combination | None = _parameter(
        None, f"how scales become one score {RECIPES_OWN}", choices=COMBINATIONS
    )
    feature_cache: str | Path | None = _parameter(
        None,
        "folder to keep the backbone's features of the images in (default: nowhere)",
        type=Path,
    )

    def changed(self, *names: str) -> dict[str, Any]:
        """Those of these parameters that the user set to something else than their default."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(Parameters)
            if each.name in names and getattr(self, each.name) != each.default
        }


def checked(given: Parameters) -> Parameters:
    """The same parameters, each of its kind: NumPy's numbers as Python's, and nothing that its flag
    would refuse.
    """
    return Parameters(
        **{each.name: _checked(each, getattr(given, each.name)) for each in fields(Parameters)}
    )


def _checked(parameter: Field[Any], value: Any) -> Any:
    if value is None and parameter.default is None:
        return None
    name, kind = parameter.name, parameter.metadata.get("type")
    choices = parameter.metadata.get("choices")
    if choices and value not in choices:
        raise UserError(f"{name} is {value!r}; there are {', '.join(choices)}")
    try:
        if kind is int:
            return operator.index(value)
        if kind is float:
            return float(operator.pos(value))  # which text has not
    except TypeError:
        number = "a whole number" if kind is int else "a number"
        raise UserError(f"{name} is {value!r}; it must be {number}") from None
    return bool(value) if isinstance(parameter.default, bool) else value


OWN = "custom"  # the name of an objective that was given as a value and has none

# Parameters that say where something is, not what is computed.
PLACES = ("feature_cache", "weights")


def check_seed(seed: int) -> None:
    from igd.inference.header import LARGEST  # which NumPy and Pillow come with

    if not 0 <= seed <= LARGEST:
        raise UserError(f"seed is {seed}; it must lie between 0 and {LARGEST}")
