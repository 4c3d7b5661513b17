"""What of the parameters has no effect on what is built, and is refused."""

from __future__ import annotations

from typing import Any

from igd.backbones.features import SMALL_LIMIT
from igd.errors import UserError
from igd.scales.recipes import Recipe
from igd.scales.scale_settings import AutoEncoderSettings, ScaleSettings
from igd.training.parameters import LEARNING, Parameters

TRAINED_BY = (
    "objective",
    "epochs",
    "steps",
    "batch_size",
    "learning_rate",
    "width",
    "device",
    "precision",
)
READ_BY_BACKBONE = ("backbone", "weights")
OF_TILES = ("overlap", "tile_descriptors")


def refuse_without_effect(
    parameters: Parameters, recipe: Recipe, settings: list[ScaleSettings], side: int
) -> None:
    """A parameter that changes nothing in what is built must not look as if it had been used."""
    scales = ", ".join(each.name for each in settings)
    trained = "global" if side <= SMALL_LIMIT else "global,local"
    pretrain = parameters.pretrain or recipe.pretrain
    if not any(isinstance(each, AutoEncoderSettings) for each in settings):
        _refuse(
            parameters.changed(
                *(each for each in TRAINED_BY if each != "precision" or pretrain not in LEARNING)
            ),
            f"images of {side} pixels are scored by {scales} here, which trains nothing; "
            f"add a scale that is trained (--scales {trained}), or train from scratch "
            "(--pretrain scratch)",
        )
    if pretrain not in ("imagenet", "distill"):
        _refuse(
            parameters.changed(*READ_BY_BACKBONE),
            f"the encoder comes from {pretrain} here; use ImageNet features (--pretrain imagenet "
            f"or distill)",
        )
    if parameters.tile is None:
        _refuse(parameters.changed(*OF_TILES), "images are not cut into tiles (--tile)")
    if parameters.epochs is not None and parameters.steps is not None:
        raise UserError("epochs and steps both say how long to train; give one of them")


def refuse_with_tiles(
    parameters: Parameters, settings: list[ScaleSettings], calibrated: bool
) -> None:
    """What tiles can't be scored by, or has no effect on them."""
    trained = [each.name for each in settings if isinstance(each, AutoEncoderSettings)]
    if trained:
        raise UserError(
            f"tiles can't be scored by {', '.join(trained)}, trained on whole images; leave --tile "
            f"out, or use --scales position,bank,whole,grain of the recipe fast, with tiles of "
            f"more than {SMALL_LIMIT} pixels"
        )
    if not calibrated:
        raise UserError("tiles have no plain sum; use --combination calibrated, or no --tile")
    _refuse(parameters.changed("fit_to"), "tiles are squares already (--tile)")
    _refuse(
        parameters.changed("roi", "ignore", "align"),
        "tiles cover all of an image, where it lies (--tile); leave one of the two out",
    )


def refuse_unbounded_sum(settings: list[ScaleSettings], calibrated: bool) -> None:
    """The paper's sum is one of scores in [0, 1]; distances of closed forms have no bound."""
    closed = [each.name for each in settings if not isinstance(each, AutoEncoderSettings)]
    if closed and not calibrated:
        raise UserError(
            f"the plain sum is for the paper's scores, and {', '.join(closed)} measure distances; "
            f"use --combination calibrated, or scales that are trained (--scales global)"
        )


def refuse_smoothing_beyond(settings: list[ScaleSettings], shape: tuple[int, int]) -> None:
    """A map that is smoothed by more than its size says nothing of where."""
    for each in settings:
        if each.smoothing >= min(shape):
            raise UserError(
                f"images of {shape[0]}x{shape[1]} pixels are too small for the scale {each.name}, "
                f"whose map is smoothed by {each.smoothing:g}; read them larger (--image-size)"
            )


def _refuse(changed: dict[str, Any], reason: str) -> None:
    if changed:
        named = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        verb = "has" if len(changed) == 1 else "have"
        raise UserError(f"{named} {verb} no effect: {reason}")
