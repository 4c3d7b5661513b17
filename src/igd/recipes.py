"""Recipes: every number of a training, under a name. What a user sets replaces what the recipe says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from igd.errors import UserError
from igd.method.em import Training
from igd.method.objective import OBJECTIVES, Objective
from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity

SMALL_SIDE = 32  # images up to SMALL_LIMIT pixels get one model at this side
SMALL_LIMIT = 64
LARGE_SIDE = 256


@dataclass(frozen=True)
class ScaleSettings:
    """One model of the detector: what it looks at, its networks and its training."""

    name: str
    similarity: Similarity
    training: Training
    patch: int | None = None  # side of the patches it looks at; None: the whole image
    halvings: int = 0  # of what it looks at, before it looks
    stride: int = 16  # distance of neighbouring patches
    scored: int = 1  # one patch in so many, along each axis, while scoring
    width: int = 64  # channels of the first stage; ResNet18's are 64
    latent_size: int | None = 128  # Z, no more than a frozen backbone has features; None: as many
    start: Literal["random", "whitened"] = "random"  # of the linear layer on frozen features
    anomaly_share: float = 0.5  # of l_h in the score, the rest being l_r's
    smoothing: float = 0.0  # of the map: sigma of a Gaussian, in pixels of the model's image

    @property
    def smallest_side(self) -> int:
        """Shortest side of what it looks at that MS-SSIM can still divide, in pixels of the image."""
        return self.similarity.smallest_side << self.halvings


@dataclass(frozen=True)
class PixelSettings:
    """The pixel-wise descriptor: a Gaussian at each position of a frozen backbone's maps."""

    name: str = "pixel"
    borrowed: float = 0.25  # share of its neighbours' covariance in that of a cell of positions
    shared: float = 0.03  # share of the whole image's
    ridge: float = 0.001  # added to the variance of each feature, in units of their mean
    enough: int = 300  # images; a set is seen again, a little moved, as often as makes no more of them
    shift: float = 4.0  # pixels, at most, along each axis
    turn: float = 10.0  # degrees, at most
    steadied: float = 0.5  # power of an image's own unrest that its distances are divided by; 0: none
    smoothing: float = 4.0  # of the map: sigma of a Gaussian, in pixels of the model's image


AnyScale = ScaleSettings | PixelSettings
Pretraining = Literal["scratch", "imagenet", "distill", "contrastive"]
Combination = Literal["calibrated", "sum"]
PRETRAININGS: tuple[str, ...] = ("scratch", "imagenet", "distill", "contrastive")


@dataclass(frozen=True)
class Recipe:
    """A name for a complete set of settings."""

    name: str
    small: tuple[AnyScale, ...]  # for images up to 64 pixels
    large: tuple[AnyScale, ...]  # for larger ones
    frozen_small: tuple[AnyScale, ...]  # the same on the features of a frozen backbone
    frozen_large: tuple[AnyScale, ...]
    default_scales: tuple[str, ...]  # of those there are
    pretrain: Pretraining = "scratch"
    combination: Combination = "sum"  # of scales, and of l_h and l_r: the paper's sum, or each in units of its own spread


_PAPER = Training()
_AUTHORS = Training(betas=(0.0, 0.9), schedule="polynomial", e_step_every=10, flip=True, batch_size=16)
_FAST = Training(learning_rate=1e-3, schedule="cosine", online_rate=0.1, epoch_size=512, balance=0.3, clip=0.5)
# A whitened start is already the best Gaussian of the features: training refines it, gently and for a short while.
_REFINE = replace(_FAST, learning_rate=3e-4, steps=200)

_PAPER_SMALL = ScaleSettings("global", PATCH, _PAPER)
_PAPER_LARGE = (ScaleSettings("global", WHOLE_IMAGE, _PAPER), ScaleSettings("local", PATCH, _PAPER, patch=32))
_AUTHORS_SMALL = ScaleSettings("global", PATCH, _AUTHORS, anomaly_share=0.9)
_AUTHORS_LARGE = (
    ScaleSettings("global", WHOLE_IMAGE, _AUTHORS, anomaly_share=0.9),
    ScaleSettings("local", PATCH, replace(_AUTHORS, batch_size=450), patch=32, anomaly_share=0.1),
)
_FAST_SMALL = ScaleSettings("global", PATCH, replace(_FAST, steps=500), width=16, smoothing=1.0)
_FAST_LARGE = (
    ScaleSettings("global", WHOLE_IMAGE, replace(_FAST, steps=300, batch_size=8), width=16, smoothing=4.0),
    # A score of an image is that of its worst patch, and some normal patch is always far from the centre: as in the
    # authors' code, l_h counts for a tenth there.
    ScaleSettings("local", PATCH, replace(_FAST, steps=1000), patch=32, width=16, anomaly_share=0.1, smoothing=4.0),
)
# The authors weight l_h of whole images with nine tenths and that of patches with one.
_ON_WHOLE_IMAGES: dict[str, Any] = {"anomaly_share": 0.9, "latent_size": 1024, "start": "whitened"}
_FROZEN_SMALL = replace(_FAST_SMALL, training=replace(_REFINE, batch_size=32), **_ON_WHOLE_IMAGES)
# Decoding and comparing are what scoring a large image costs. Here they stand beside the pixel scale, which sees what is
# small: narrow decoders, all at half the image's size, patches side by side, whole images by the coarser four of five scales.
_HALVED: dict[str, Any] = {"halvings": 1, "similarity": Similarity(weights=PATCH.weights)}
_HALVED_PATCHES: dict[str, Any] = {"halvings": 1, "patch": 64, "stride": 32, "scored": 2}
_FROZEN_LARGE = (
    replace(_FAST_LARGE[0], training=replace(_REFINE, batch_size=8), width=8, **_HALVED, **_ON_WHOLE_IMAGES),
    replace(
        _FAST_LARGE[1], training=replace(_REFINE, steps=500), width=8, **_HALVED_PATCHES, latent_size=None, start="whitened"
    ),
    PixelSettings(),
)
_BOTH = ("global", "local")

RECIPES = {
    "paper": Recipe("paper", (_PAPER_SMALL,), _PAPER_LARGE, (_PAPER_SMALL,), _PAPER_LARGE, _BOTH),
    "authors": Recipe("authors", (_AUTHORS_SMALL,), _AUTHORS_LARGE, (_AUTHORS_SMALL,), _AUTHORS_LARGE, _BOTH),
    "fast": Recipe(
        "fast",
        (_FAST_SMALL,),
        _FAST_LARGE,
        (_FROZEN_SMALL,),
        _FROZEN_LARGE,
        ("pixel",),
        pretrain="imagenet",
        combination="calibrated",
    ),
}


def find_recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise UserError(f"no recipe is called {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def find_objective(name: str) -> Objective:
    if name not in OBJECTIVES:
        raise UserError(f"no objective is called {name!r}; there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
