"""Recipes: every number of a training, under a name. What a user sets replaces what the recipe
says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from igd.errors import UserError
from igd.method.objective import OBJECTIVES, Objective
from igd.method.schedule import Training
from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity
from igd.scales.scale_settings import (
    EARLY,
    FINE,
    GRAIN,
    LATE,
    AutoEncoderSettings,
    BankSettings,
    EmbeddingSettings,
    Level,
    PositionSettings,
    ScaleSettings,
    WholeSettings,
)

SMALL_SIDE = 32  # images up to SMALL_LIMIT pixels get one model at this side
LARGE_SIDE = 256

Pretraining = Literal["scratch", "imagenet", "distill", "contrastive", "rotation"]
Combination = Literal["calibrated", "sum"]
PRETRAININGS: tuple[Pretraining, ...] = get_args(Pretraining)
FORMER_NAMES = {"pixel": "position"}  # of scales, in flags


@dataclass(frozen=True)
class Recipe:
    """A name for a complete set of settings."""

    name: str
    small: tuple[ScaleSettings, ...]  # for images up to 64 pixels
    large: tuple[ScaleSettings, ...]  # for larger ones
    frozen_small: tuple[ScaleSettings, ...]  # the same on the features of a frozen backbone
    frozen_large: tuple[ScaleSettings, ...]
    default_scales: tuple[str, ...]  # of those there are
    pretrain: Pretraining = "scratch"
    # Of scales, and of the terms of one: the paper's sum, or each in units of its own spread.
    combination: Combination = "sum"


_PAPER = Training()
_AUTHORS = Training(
    betas=(0.0, 0.9), schedule="polynomial", e_step_every=10, flip=True, batch_size=16
)
_FAST = Training(
    learning_rate=1e-3, schedule="cosine", online_rate=0.1, epoch_size=512, balance=0.3, clip=0.5
)
# A whitened start is already the best Gaussian of the features: training refines it, gently and for
# a short while.
_REFINE = replace(_FAST, learning_rate=3e-4, steps=200)

_PAPER_SMALL = AutoEncoderSettings("global", PATCH, _PAPER)
_PAPER_LARGE = (
    AutoEncoderSettings("global", WHOLE_IMAGE, _PAPER),
    AutoEncoderSettings("local", PATCH, _PAPER, patch=32),
)
_AUTHORS_SMALL = AutoEncoderSettings("global", PATCH, _AUTHORS, anomaly_share=0.9)
_AUTHORS_LARGE = (
    AutoEncoderSettings("global", WHOLE_IMAGE, _AUTHORS, anomaly_share=0.9),
    AutoEncoderSettings(
        "local", PATCH, replace(_AUTHORS, batch_size=450), patch=32, anomaly_share=0.1
    ),
)
# Small batches: on held-out training images of a digit, a thousand steps of 16 reach in two fifths
# of the time what a thousand of 64 do. In the paper's sum l_h counts little: it helps where objects
# are alike, and harms where scenes differ.
_FAST_SMALL = AutoEncoderSettings(
    "global",
    PATCH,
    replace(_FAST, steps=1000, batch_size=16),
    width=16,
    anomaly_share=0.25,
    statistics=True,
    smoothing=1.0,
)
_FAST_LARGE = (
    AutoEncoderSettings(
        "global", WHOLE_IMAGE, replace(_FAST, steps=300, batch_size=8), width=16, smoothing=4.0
    ),
    # A score of an image is that of its worst patch, and some normal patch is always far from the
    # centre: as in the authors' code, l_h counts for a tenth there.
    AutoEncoderSettings(
        "local",
        PATCH,
        replace(_FAST, steps=1000),
        patch=32,
        width=16,
        anomaly_share=0.1,
        smoothing=4.0,
    ),
)
# The authors weight l_h of whole images with nine tenths and that of patches with one.
_ON_WHOLE_IMAGES: dict[str, Any] = {
    "anomaly_share": 0.9,
    "latent_size": 1024,
    "start": "whitened",
    "statistics": False,
}
_FROZEN_SMALL = (
    replace(_FAST_SMALL, training=replace(_REFINE, batch_size=32), **_ON_WHOLE_IMAGES),
    # What small images show lies anywhere: the whole says whether, 8 x 8 positions show where.
    PositionSettings(levels=(Level("fine", FINE),), smoothing=1.0, scored=False),
    EmbeddingSettings(),
)
# Decoding and comparing are what scoring a large image costs. Here they stand beside the position
# scale, which finds what is small: narrow decoders, all at half the image's size, patches side by
# side, whole images by the coarser four of five scales.
_HALVED: dict[str, Any] = {"downsampling": 1, "similarity": Similarity(weights=PATCH.weights)}
_HALVED_PATCHES: dict[str, Any] = {
    "downsampling": 1,
    "patch": 64,
    "stride": 32,
    "inference_stride": 2,
}
_FROZEN_LARGE = (
    replace(
        _FAST_LARGE[0],
        training=replace(_REFINE, batch_size=8),
        width=8,
        **_HALVED,
        **_ON_WHOLE_IMAGES,
    ),
    replace(
        _FAST_LARGE[1],
        training=replace(_REFINE, steps=500),
        width=8,
        **_HALVED_PATCHES,
        latent_size=None,
        start="whitened",
    ),
    PositionSettings(),
    BankSettings(),
    WholeSettings(),
    # For tiles: of what is a few pixels wide only early features know.
    BankSettings(GRAIN, EARLY, nearest=1, top=1),
)
# Of tiles, `grain` has the detail, and features of a quarter of a tile's side would take as much
# memory as all others.
TILED_LEVELS = (
    Level("early", EARLY, pooled=True, cell=1, map_weight=2.0),
    Level("fine", FINE, map_weight=2.0),
    Level("late", LATE, map_weight=0.5),
)
_BOTH = ("global", "local")

RECIPES = {
    "paper": Recipe("paper", (_PAPER_SMALL,), _PAPER_LARGE, (_PAPER_SMALL,), _PAPER_LARGE, _BOTH),
    "authors": Recipe(
        "authors", (_AUTHORS_SMALL,), _AUTHORS_LARGE, (_AUTHORS_SMALL,), _AUTHORS_LARGE, _BOTH
    ),
    "fast": Recipe(
        "fast",
        (_FAST_SMALL,),
        _FAST_LARGE,
        _FROZEN_SMALL,
        _FROZEN_LARGE,
        ("position", "bank", "whole", "embedding"),
        pretrain="imagenet",
        combination="calibrated",
    ),
}


def find_recipe(name: str | Recipe) -> Recipe:
    if isinstance(name, Recipe):
        return name
    if name not in RECIPES:
        raise UserError(f"no recipe is called {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def find_objective(name: str | Objective) -> Objective:
    if isinstance(name, Objective):
        return name
    if name not in OBJECTIVES:
        raise UserError(f"no objective is called {name!r}; there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
