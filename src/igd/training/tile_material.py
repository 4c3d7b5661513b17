"""The images of a training in tiles: which descriptors they ask for, what is learnt from them, and
what they promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.data.tile_set import TileSet
from igd.errors import UserError
from igd.inference.conformal import Calibration
from igd.progress import Progress
from igd.scales.base import FeatureScale
from igd.scales.fusion import Fusion
from igd.scales.recipes import PositionSettings
from igd.training.calibrate import Model
from igd.training.calibrate_tiles import calibrate_tiles, fit_tile_fusion
from igd.training.extract import features_of_images
from igd.training.material import Material
from igd.training.parameters import Parameters
from igd.training.plan import Plan
from igd.training.resume import Controls
from igd.training.tile_learner import (
    FINE,
    TileLearner,
    TileReader,
    collected,
    folds_of,
    position_matters,
)


def with_descriptors(
    plan: Plan,
    parameters: Parameters,
    material: Material,
    features: dict[str, Tensor],
    progress: Progress,
) -> Plan:
    """The plan with tiles that share one descriptor or, as the user or the images say, with one for
    each place.
    """
    asked, images = parameters.tile_descriptors, material.images
    assert plan.tiling
    assert isinstance(images, TileSet)
    by_position = any(isinstance(each, PositionSettings) for each in plan.settings)
    if asked == "own" and not by_position:
        raise UserError(
            "tile_descriptors='own' has no effect: only the scale position knows places, and it is "
            "not among the scales (--scales)"
        )
    if asked is None:
        places = images.subset(material.split.training).places
        own = by_position and position_matters(places, features_of_images(features).maps[FINE])
        told = "each place has a descriptor of its own" if own else "all tiles share one descriptor"
        progress.say(f"tiles of {plan.tiling.side} pixels: {told} (--tile-descriptors)")
    else:
        own = asked == "own"
    return replace(plan, tiling=replace(plan.tiling, size=images.sizes[0] if own else None))


def tile_learner(
    plan: Plan,
    model: Model,
    features: Features,
    material: Material,
    fresh: Callable[[], list[FeatureScale]],
    seed: int,
    controls: Controls,
) -> TileLearner:
    """What the scales of this plan learn from."""
    images = material.images.subset(material.split.training)
    assert plan.tiling
    assert model.backbone
    assert isinstance(images, TileSet)
    reader = TileReader(model.backbone, plan.tiling, plan.geometry, controls)
    folds = folds_of(material.groups[material.split.training], material.cross_fitted, seed)
    return TileLearner(reader, images, folds, features, fresh, seed)


def calibrated_in_tiles(
    model: Model, learner: TileLearner, material: Material
) -> tuple[Fusion, Calibration]:
    """How parts become one score of an image, and what images that were not learnt from say of
    it.
    """
    unseen, split, reader = material.unseen, material.split, learner.reader
    assert isinstance(unseen, TileSet)
    wanted = torch.cat([split.scaling, split.calibration]).unique()
    if material.cross_fitted:
        measuring = learner.cross_measured(wanted)
    else:
        measuring = reader.measured(model.on_features, unseen, wanted.tolist())
    measured = collected(measuring, len(wanted), reader)
    fusion = fit_tile_fusion(
        model.on_features, [measured[n] for n in split.scaling.tolist()], reader.geometry.side
    )
    to_calibrate = [(unseen.sizes[n], measured[n]) for n in split.calibration.tolist()]
    return calibrate_tiles(
        model.on_features, to_calibrate, fusion, material.rate, reader.tiling, reader.geometry
    )
