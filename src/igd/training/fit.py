"""The whole way, from a source of images to a fitted state: the page 'The way of an image' in
code.
"""

from __future__ import annotations

import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.data.roi_arguments import described
from igd.data.sources import Source
from igd.data.store import Pixels
from igd.files.checkpoint_file import Checkpoint
from igd.inference.conformal import Calibration, smallest_rate
from igd.scales.base import FeatureScale
from igd.scales.fusion import Fusion
from igd.scales.recipes import find_recipe
from igd.scales.region_mask import RegionMask
from igd.training.calibrate import (
    Model,
    measure_autoencoders,
    name_odd_ones,
    odd_names,
    odd_ones,
    say_encoder_may_know,
)
from igd.training.checkpoint import Controls, fingerprint
from igd.training.crossfit import Distances, outputs_of
from igd.training.extract import extract_features
from igd.training.fitted import FittedState, examples_of
from igd.training.learner import Learner, fresh_scales
from igd.training.make_backbone import make_backbone
from igd.training.material import gather, provenance
from igd.training.parameters import OWN, PLACES, PRETRAININGS, Parameters, checked
from igd.training.plan import Plan, make_plan
from igd.training.train_autoencoders import train_autoencoders
from igd.version import __version__


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
    parameters = checked(parameters)
    plan = make_plan(parameters, source, progress)
    material = gather(parameters, plan, source, separate, progress)
    training = material.training
    run, controls = _begun(plan, parameters, training, controls, checkpoint, resume)
    backbone = make_backbone(plan, training, parameters.feature_cache, controls)
    scales = fresh_scales(plan, material.channels, backbone)
    model = Model(backbone, scales, RegionMask.of(plan.geometry))
    features = extract_features(backbone, scales, training, controls)
    if backbone:
        backbone.close()  # what follows needs its memory
    learner = Learner(plan, parameters, model, material, features, controls)
    if plan.tiling:
        learner.choose_descriptors()
    learner.learn()
    warned = train_autoencoders(scales, training, features, parameters, controls)
    if separate is None and parameters.pretrain not in (None, *PRETRAININGS):
        warned += say_encoder_may_know(Path(parameters.pretrain), progress)
    del features  # the learner's own: it may go on with fewer
    if plan.calibrated:
        measure_autoencoders(model, material.scaling, progress)
    fusion, calibration = learner.calibrated(
        lambda *fold: progress.preview(partial(_preview, learner, *fold))
    )
    while parameters.exclude_odd and (odd := odd_ones(calibration.scores)):
        warned += learner.leave_out(odd)
        fusion, calibration = learner.calibrated()
    names = learner.material.calibration_names
    warned += name_odd_ones(calibration, names, "--exclude-odd; ", progress)
    told = {
        "seconds": round(time.time() - started, 1),
        "fingerprint": run,
        "warnings": warned,
        "odd_images": odd_names(calibration.scores, names),
    }
    return _fitted(learner, fusion, calibration, told)


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


def _preview(
    learner: Learner, scales: list[FeatureScale], held_out: Tensor, distances: Distances
) -> tuple[FittedState, list[str]]:
    """The model of the first fold, and the images that it did not learn from, the least usual
    first: what can be drawn while the other folds are measured.
    """
    first = replace(learner, model=replace(learner.model, scales=list(scales)))
    outputs = partial(outputs_of, scales, distances, learner.plan.geometry.shape)
    rate = max(learner.material.rate, smallest_rate(len(held_out)))
    fusion, calibration = first.fused(outputs, outputs, rate)
    unusual = calibration.scores.argsort(kind="stable")[::-1]
    names = [learner.material.images.names[int(held_out[number])] for number in unusual]
    return _fitted(first, fusion, calibration, {}), names


def _fitted(
    learner: Learner, fusion: Fusion, calibration: Calibration, told: dict[str, Any]
) -> FittedState:
    plan, model, material = learner.plan, learner.model, learner.material
    examples, places = examples_of(material.unseen, material.split.calibration)
    fitted = FittedState(
        parameters=stored_parameters(learner.parameters),
        geometry=plan.geometry,
        channels=material.channels,
        objective=plan.objective,
        backbone=model.backbone,
        scales=model.scales,
        fusion=fusion,
        calibration=calibration,
        examples=examples,
        example_scores=torch.zeros(len(examples)),
        provenance={**provenance(material, model.backbone), **told},
        tiling=plan.tiling,
        example_places=places if plan.tiling and plan.tiling.size else None,
    )
    return replace(fitted, example_scores=fitted.score(examples, fitted.example_places).score)


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
