"""The whole way, from a source of images to a fitted state: the page 'The way of an image' in
code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.backbones.features import FrozenBackbone
from igd.data.roi_arguments import described
from igd.data.sources import Source
from igd.data.store import Pixels
from igd.files.checkpoint import Checkpoint
from igd.inference.conformal import Calibration, smallest_rate
from igd.progress import Progress
from igd.scales.base import ScaleOutput
from igd.scales.factory import build_scale
from igd.scales.fusion import Fusion
from igd.scales.recipes import find_recipe
from igd.scales.region_mask import RegionMask
from igd.training.autoencoders import train_autoencoders
from igd.training.calibrate import (
    Model,
    calibrate,
    fit_fusion,
    measure_autoencoders,
    name_odd_ones,
    odd_names,
    odd_ones,
    say_left_out,
)
from igd.training.crossfit import Distances, cross_fit, learn, outputs_of
from igd.training.diagnostics import check_scores
from igd.training.examples import examples_of
from igd.training.extract import extract_features, features_of_images
from igd.training.fitted import FittedState
from igd.training.material import Material, gather, provenance
from igd.training.parameters import OWN, PLACES, Parameters
from igd.training.plan import Plan, make_backbone, make_plan
from igd.training.resume import Controls, fingerprint
from igd.training.tile_learner import TileLearner
from igd.training.tile_material import calibrated_in_tiles, tile_learner, with_descriptors
from igd.version import __version__

Outputs = Callable[[], Iterator[list[ScaleOutput]]]


def fit(
    parameters: Parameters,
    source: Source,
    controls: Controls,
    checkpoint: Path | None,
    resume: bool,
    separate: Source | None = None,
) -> FittedState:
    """Plan, read, split; extract features and learn; fuse and calibrate. Images that are given
    apart (`separate`) calibrate, and all others are learnt from.
    """
    started, progress = time.time(), controls.progress
    plan = make_plan(parameters, source, progress)
    material = gather(parameters, plan, source, separate, progress)
    training = material.training
    run, controls = _begun(plan, parameters, training, controls, checkpoint, resume)

    backbone = make_backbone(plan, training, parameters.feature_cache, controls)
    scales = _fresh_scales(plan, material.channels, backbone)
    model = Model(backbone, scales, RegionMask.of(plan.geometry))
    features = extract_features(backbone, model.scales, training, controls)
    if plan.tiling:
        plan = with_descriptors(plan, parameters, material, features, progress)
    learner = _learnt(plan, model, features, material, parameters, controls)
    warned = train_autoencoders(model.scales, training, features, parameters, controls)
    if plan.calibrated:
        measure_autoencoders(model, material.scaling, progress)

    fusion, calibration = _calibrated(
        plan, model, features, material, parameters, learner, progress
    )
    while parameters.exclude_odd and (odd := odd_ones(calibration.scores)):
        warned += say_left_out(odd, material.calibration_names, progress)
        material, kept = material.without(odd, plan, parameters)
        if material.cross_fitted:
            kept = kept.repeat_interleave(plan.tiles_each)
            features = {name: rows[kept] for name, rows in features.items()}
            learner = _learnt(plan, model, features, material, parameters, controls)
        fusion, calibration = _calibrated(
            plan, model, features, material, parameters, learner, progress
        )
    warned += name_odd_ones(calibration, material.calibration_names, "--exclude-odd; ", progress)
    told = {
        **provenance(material, backbone),
        "seconds": round(time.time() - started, 1),
        "fingerprint": run,
        "warnings": warned,
        "odd_images": odd_names(calibration.scores, material.calibration_names),
    }
    return _fitted(parameters, plan, model, fusion, calibration, material, told)


def _begun(
    plan: Plan,
    parameters: Parameters,
    training: Pixels,
    controls: Controls,
    checkpoint: Path | None,
    resume: bool,
) -> tuple[str, Controls]:
    """What the run is known by, and its controls, with the checkpoint that is kept of it."""
    described = plan.described(stored_parameters(parameters), __version__)
    run = fingerprint(described, training)
    if checkpoint is None:
        return run, controls
    fabric = controls.fabric
    saved = Checkpoint(checkpoint, run, described, fabric is None or fabric.global_rank == 0)
    if resume and not saved.load():
        controls.progress.say(f"{saved.path}: nothing to resume; starting from the beginning")
    if fabric is not None:
        fabric.barrier()  # all have read it before one writes
    return run, controls._replace(saved=saved)


def _learnt(
    plan: Plan,
    model: Model,
    features: dict[str, Tensor],
    material: Material,
    parameters: Parameters,
    controls: Controls,
) -> TileLearner | None:
    """Let the scales on features learn; of tiles, what they learnt from is needed again."""
    if plan.tiling is None:
        learn(model.on_features, features_of_images(features), parameters.seed)
        return None
    fresh = partial(_fresh_scales, plan, material.channels, model.backbone)
    learner = tile_learner(
        plan, model, features_of_images(features), material, fresh, parameters.seed, controls
    )
    learner.learn(model.on_features)
    return learner


def _calibrated(
    plan: Plan,
    model: Model,
    features: dict[str, Tensor],
    material: Material,
    parameters: Parameters,
    learner: TileLearner | None,
    progress: Progress,
) -> tuple[Fusion, Calibration]:
    """How parts become one score, and what images that were not learnt from say of it."""
    if learner:
        fusion, calibration = calibrated_in_tiles(model, learner, material)
        check_scores(calibration.scores)
        return fusion, calibration
    unseen = _unseen(plan, model, features, material, parameters, progress)
    fusion, calibration = _fused(plan, model, *unseen, material.rate)
    check_scores(calibration.scores)
    return fusion, calibration


def _fused(
    plan: Plan, model: Model, to_scale: Outputs, to_calibrate: Outputs, rate: float
) -> tuple[Fusion, Calibration]:
    fusion = fit_fusion(to_scale(), plan.on_features, model.region) if plan.calibrated else Fusion()
    return calibrate(to_calibrate(), fusion, rate, model.region)


def _unseen(
    plan: Plan,
    model: Model,
    features: dict[str, Tensor],
    material: Material,
    parameters: Parameters,
    progress: Progress,
) -> tuple[Outputs, Outputs]:
    """What scales say of images that they did not learn from, nor from others of their group: to
    scale parts by, and to calibrate with.
    """
    if material.cross_fitted:
        fresh = partial(_fresh_scales, plan, material.channels, model.backbone)
        distances = cross_fit(
            fresh,
            features_of_images(features),
            parameters.seed,
            progress,
            material.groups,
            on_first=lambda *fold: progress.preview(
                partial(_preview, plan, model, material, parameters, *fold)
            ),
        )
        chosen = [[part[material.split.calibration] for part in parts] for parts in distances]
        outputs = partial(outputs_of, model.on_features, size=2 * (plan.geometry.side,))
        return partial(outputs, distances), partial(outputs, chosen)
    return (
        partial(model.outputs, material.scaling, progress, "scaling scores"),
        partial(model.outputs, material.calibrating, progress, "calibrating"),
    )


def _preview(
    plan: Plan,
    model: Model,
    material: Material,
    parameters: Parameters,
    scales: list[Any],
    held_out: Tensor,
    distances: Distances,
) -> tuple[FittedState, list[str]]:
    """The model of the first fold, and the images that it did not learn from, the least usual
    first: what can be drawn while the other folds are measured.
    """
    outputs = partial(outputs_of, scales, distances, 2 * (plan.geometry.side,))
    rate = max(material.rate, smallest_rate(len(held_out)))
    model = replace(model, scales=scales)
    fusion, calibration = _fused(plan, model, outputs, outputs, rate)
    told = provenance(material, model.backbone)
    fitted = _fitted(parameters, plan, model, fusion, calibration, material, told)
    unusual = calibration.scores.argsort(kind="stable")[::-1]
    return fitted, [material.images.names[int(held_out[number])] for number in unusual]


def _fitted(
    parameters: Parameters,
    plan: Plan,
    model: Model,
    fusion: Fusion,
    calibration: Calibration,
    material: Material,
    told: dict[str, Any],
) -> FittedState:
    examples, places = examples_of(material.unseen, material.split.calibration)
    fitted = FittedState(
        parameters=stored_parameters(parameters),
        geometry=plan.geometry,
        channels=material.channels,
        objective=plan.objective,
        backbone=model.backbone,
        scales=model.scales,
        fusion=fusion,
        calibration=calibration,
        examples=examples,
        example_scores=torch.zeros(len(examples)),
        provenance=told,
        tiling=plan.tiling,
        example_places=places if plan.tiling and plan.tiling.size else None,
    )
    return replace(fitted, example_scores=fitted.score(examples, fitted.example_places).score)


def _fresh_scales(plan: Plan, channels: int, backbone: FrozenBackbone | None) -> list[Any]:
    side, region = plan.geometry.side, RegionMask.of(plan.geometry)
    return [
        build_scale(each, plan.objective, side, channels, backbone, region)
        for each in plan.settings
    ]


def stored_parameters(parameters: Parameters) -> dict[str, Any]:
    """The parameters as a file holds them: without paths, which are nobody else's business."""
    told = {
        each.name: getattr(parameters, each.name)
        for each in fields(Parameters)
        if each.name not in PLACES
    }
    told["recipe"] = find_recipe(parameters.recipe).name
    if not isinstance(parameters.objective, str):
        told["objective"] = OWN
    told["roi"], told["ignore"] = described(parameters.roi), described(parameters.ignore)
    told["scales"] = parameters.scales and list(parameters.scales)
    # Of an encoder's file.
    told["pretrain"] = parameters.pretrain and Path(parameters.pretrain).name
    return told
