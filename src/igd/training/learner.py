"""A model on its way from features to a calibrated one: what its scales learn from, and what images
that they did not learn from say of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from igd.backbones.features import FrozenBackbone
from igd.data.tile_set import TileSet
from igd.errors import UserError
from igd.inference.conformal import Calibration
from igd.scales.base import ScaleOutput
from igd.scales.factory import build_scale
from igd.scales.fusion import Fusion
from igd.scales.region_mask import RegionMask
from igd.scales.scale_settings import PositionSettings
from igd.training.calibrate import Model, calibrate, fit_fusion, say_left_out
from igd.training.calibrate_tiles import calibrate_tiles, fit_tile_fusion
from igd.training.checkpoint import Controls
from igd.training.crossfit import Watch, cross_fit, learn, outputs_of
from igd.training.diagnostics import check_scores
from igd.training.extract import features_of_images
from igd.training.material import Material
from igd.training.parameters import Parameters
from igd.training.plan import Plan
from igd.training.tile_learner import (
    FINE,
    TileLearner,
    TileReader,
    collected,
    folds_of,
    position_matters,
)

Outputs = Callable[[], Iterator[list[ScaleOutput]]]


@dataclass
class Learner:
    """A model, the images that it learns from, and those that calibrate it."""

    plan: Plan
    parameters: Parameters
    model: Model
    material: Material
    features: dict[str, Tensor]  # of the images that are learnt from
    controls: Controls
    tiles: TileLearner | None = field(init=False, default=None)

    def choose_descriptors(self) -> None:
        """Let tiles share one descriptor or, as the user or the images say, have one for each
        place.
        """
        asked, tiling = self.parameters.tile_descriptors, self.plan.tiling
        images = self.material.images
        assert tiling
        assert isinstance(images, TileSet)
        by_position = any(isinstance(each, PositionSettings) for each in self.plan.settings)
        if asked == "own" and not by_position:
            raise UserError(
                "tile_descriptors='own' has no effect: only the scale position knows places, and "
                "it is not among the scales (--scales)"
            )
        own = asked == "own"
        if asked is None:
            places = images.subset(self.material.split.training).places
            maps = features_of_images(self.features).maps
            own = by_position and position_matters(places, maps[FINE])
            shared = "all tiles share one descriptor"
            told = "each place has a descriptor of its own" if own else shared
            self.controls.progress.say(
                f"tiles of {tiling.side} pixels: {told} (--tile-descriptors)"
            )
        self.plan = replace(
            self.plan, tiling=replace(tiling, size=images.sizes[0] if own else None)
        )

    def learn(self) -> None:
        """Let the scales on features learn; of tiles, what they learnt from is needed again."""
        features = features_of_images(self.features)
        if self.plan.tiling is None:
            learn(self.model.on_features, features, self.parameters.seed)
            return
        material, seed = self.material, self.parameters.seed
        images = material.images.subset(material.split.training)
        assert self.model.backbone
        assert isinstance(images, TileSet)
        reader = TileReader(
            self.model.backbone, self.plan.tiling, self.plan.geometry, self.controls
        )
        folds = folds_of(material.groups[material.split.training], material.cross_fitted, seed)
        self.tiles = TileLearner(reader, images, folds, features, self._fresh, seed)
        self.tiles.learn(self.model.on_features)

    def calibrated(self, on_first: Watch | None = None) -> tuple[Fusion, Calibration]:
        """How parts become one score, and what images that were not learnt from say of it.
        `on_first` is told of the first fold, where there are folds of images.
        """
        if self.tiles:
            fusion, calibration = self._calibrated_in_tiles(self.tiles)
        else:
            fusion, calibration = self.fused(*self._unseen(on_first), self.material.rate)
        check_scores(calibration.scores)
        return fusion, calibration

    def fused(
        self, to_scale: Outputs, to_calibrate: Outputs, rate: float
    ) -> tuple[Fusion, Calibration]:
        """What these outputs, of images that were not learnt from, say of the model."""
        fusion, region = Fusion(), self.model.region
        if self.plan.calibrated:
            fusion = fit_fusion(to_scale(), self.plan.on_features, region)
        return calibrate(to_calibrate(), fusion, rate, region)

    def leave_out(self, odd: list[int]) -> list[str]:
        """Go on without some of the calibration images, by their numbers among these; what was
        learnt from them is learnt anew. Returns what was said.
        """
        said = say_left_out(odd, self.material.calibration_names, self.controls.progress)
        self.material, kept = self.material.without(odd, self.plan, self.parameters)
        if self.material.cross_fitted:
            kept = kept.repeat_interleave(self.plan.tiles_each)
            self.features = {name: rows[kept] for name, rows in self.features.items()}
            self.learn()
        return said

    def _fresh(self) -> list[Any]:
        return fresh_scales(self.plan, self.material.channels, self.model.backbone)

    def _unseen(self, on_first: Watch | None) -> tuple[Outputs, Outputs]:
        """What scales say of images that they did not learn from, nor from others of their group:
        to scale parts by, and to calibrate with.
        """
        material, progress = self.material, self.controls.progress
        if not material.cross_fitted:
            return (
                partial(self.model.outputs, material.scaling, progress, "scaling scores"),
                partial(self.model.outputs, material.calibrating, progress, "calibrating"),
            )
        features = features_of_images(self.features)
        distances = cross_fit(
            self._fresh,
            features,
            self.parameters.seed,
            progress,
            material.groups,
            on_first=on_first,
            between_folds=self.controls.end_if_stopped,
        )
        chosen = [[part[material.split.calibration] for part in parts] for parts in distances]
        outputs = partial(outputs_of, self.model.on_features, size=self.plan.geometry.shape)
        return partial(outputs, distances), partial(outputs, chosen)

    def _calibrated_in_tiles(self, learner: TileLearner) -> tuple[Fusion, Calibration]:
        scales, reader = self.model.on_features, learner.reader
        unseen, split = self.material.unseen, self.material.split
        assert isinstance(unseen, TileSet)
        wanted = torch.cat([split.scaling, split.calibration]).unique()
        if self.material.cross_fitted:
            measuring = learner.cross_measured(wanted)
        else:
            measuring = reader.measured(scales, unseen, wanted.tolist())
        measured = collected(measuring, len(wanted), reader)
        scaling = [measured[n] for n in split.scaling.tolist()]
        fusion = fit_tile_fusion(scales, scaling, reader.geometry.side)
        to_calibrate = [(unseen.sizes[n], measured[n]) for n in split.calibration.tolist()]
        return calibrate_tiles(
            scales, to_calibrate, fusion, self.material.rate, reader.tiling, reader.geometry
        )


def fresh_scales(plan: Plan, channels: int, backbone: FrozenBackbone | None) -> list[Any]:
    """Scales that have learnt nothing yet."""
    side, region = plan.geometry.side, RegionMask.of(plan.geometry)
    return [
        build_scale(each, plan.objective, side, channels, backbone, region)
        for each in plan.settings
    ]
