"""Recipes: every number of a training, under a name. What a user sets replaces what the recipe says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from igd.errors import UserError
from igd.method.em import Training
from igd.method.objective import OBJECTIVES, Objective
from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity

SMALL_SIDE = 32  # images up to SMALL_LIMIT pixels get one model at this side
SMALL_LIMIT = 64
LARGE_SIDE = 256
LARGEST_SIDE = 4096


@dataclass(frozen=True)
class ScaleSettings:
    """One model of the detector: what it looks at, its networks and its training."""

    name: str
    similarity: Similarity
    training: Training
    patch: int | None = None  # side of the patches it looks at; None: the whole image
    stride: int = 16  # distance of neighbouring patches
    width: int = 64  # channels of the first stage; ResNet18's are 64
    latent_size: int = 128  # Z
    anomaly_share: float = 0.5  # of l_h in the score, the rest being l_r's
    smoothing: float = 0.0  # of the map: sigma of a Gaussian, in pixels of the model's image


@dataclass(frozen=True)
class Recipe:
    """A name for a complete set of settings."""

    name: str
    small: tuple[ScaleSettings, ...]  # for images up to 64 pixels
    large: tuple[ScaleSettings, ...]  # for larger ones: global and local


def _recipe(name: str, one: ScaleSettings, whole: ScaleSettings, patches: ScaleSettings) -> Recipe:
    return Recipe(name, (one,), (whole, patches))


_PAPER = Training()
_AUTHORS = Training(betas=(0.0, 0.9), schedule="polynomial", e_step_every=10, flip=True, batch_size=16)
_FAST = Training(learning_rate=1e-3, schedule="cosine", online_rate=0.1, epoch_size=512, balance=0.3, clip=0.5)

RECIPES = {
    "paper": _recipe(
        "paper",
        ScaleSettings("global", PATCH, _PAPER),
        ScaleSettings("global", WHOLE_IMAGE, _PAPER),
        ScaleSettings("local", PATCH, _PAPER, patch=32),
    ),
    "authors": _recipe(
        "authors",
        ScaleSettings("global", PATCH, _AUTHORS, anomaly_share=0.9),
        ScaleSettings("global", WHOLE_IMAGE, _AUTHORS, anomaly_share=0.9),
        ScaleSettings("local", PATCH, replace(_AUTHORS, batch_size=450), patch=32, anomaly_share=0.1),
    ),
    "fast": _recipe(
        "fast",
        ScaleSettings("global", PATCH, replace(_FAST, steps=500), width=16, smoothing=1.0),
        ScaleSettings("global", WHOLE_IMAGE, replace(_FAST, steps=300, batch_size=8), width=16, smoothing=4.0),
        # A score of an image is that of its worst patch, and some normal patch is always far from the centre: as in the
        # authors' code, l_h counts for a tenth there.
        ScaleSettings("local", PATCH, replace(_FAST, steps=1000), patch=32, width=16, anomaly_share=0.1, smoothing=4.0),
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
