"""The whole way, from a source of images to a fitted state: the page 'The way of an image' in
code.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.backbones.features import FrozenBackbone
from igd.data.groups import check_apart
from igd.data.image_set import ImageSet
from igd.data.sources import Source
from igd.data.store import Pixels
from igd.errors import UserError
from igd.files.checkpoint import Checkpoint
from igd.inference.conformal import Calibration, choose_rate
from igd.inference.mismatch import record
from igd.progress import Progress
from igd.scales.base import ScaleOutput
from igd.scales.factory import build_scale
from igd.scales.fusion import Fusion
from igd.scales.recipes import find_recipe
from igd.training.autoencoders import train_autoencoders
from igd.training.calibrate import (
    EXAMPLES,
    Model,
    calibrate,
    fit_fusion,
    measure_autoencoders,
    name_odd_ones,
)
from igd.training.crossfit import cross_fit, learn, outputs_of
from igd.training.diagnostics import check_scores
from igd.training.extract import extract_features, levels_of
from igd.training.fitted import FittedState
from igd.training.grouping import check_groups, described_groups, groups_of_images, unit_of
from igd.training.parameters import OWN, PLACES, Parameters
from igd.training.plan import Plan, make_backbone, make_plan
from igd.training.read_images import read_calibration_images, read_training_images
from igd.training.recalibrate import calibrated_with, described_calibration, promised_rate
from igd.training.resume import Controls, fingerprint
from igd.training.split import Split, split_images, split_separate
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
    plan = make_plan(parameters, source)
    images = read_training_images(source, plan, parameters, progress)
    groups = groups_of_images(source, images)
    if separate is None:
        check_groups(source, groups)
        unseen, split = images, split_images(groups, plan, parameters.seed)
        rate = choose_rate(
            parameters.max_false_alarms, len(split.calibration), unit=unit_of(source)
        )
    else:
        check_apart(source, separate)
        unseen = _read_separate(separate, plan, images.pixels.shape[1], parameters, progress)
        split = split_separate(len(images), groups_of_images(separate, unseen), plan)
        rate = promised_rate(parameters.max_false_alarms, split, separate)
    training = images.subset(split.training).pixels
    run, controls = _begun(plan, parameters, training, controls, checkpoint, resume)

    backbone = make_backbone(plan, training, parameters.feature_cache, controls)
    model = Model(backbone, _fresh_scales(plan, training.shape[1], backbone))
    features = extract_features(backbone, model.scales, training, controls)
    learn(model.on_features, levels_of(features), parameters.seed)
    warned = train_autoencoders(model.scales, training, features, parameters, controls)

    if separate is None and plan.held_out is None:
        to_scale, to_calibrate = _cross_fitted(
            plan, model, features, images, groups, split, parameters, progress
        )
    else:
        to_scale, to_calibrate = _held_out(plan, model, unseen, split, progress)
    fusion = fit_fusion(to_scale(), plan.on_features) if plan.calibrated else Fusion()
    fusion, calibration = calibrate(to_calibrate(), fusion, rate)
    check_scores(calibration.scores)
    warned += name_odd_ones(calibration, [unseen.names[n] for n in split.calibration], progress)
    told = {
        **provenance(source, separate, images, split, backbone),
        "seconds": round(time.time() - started, 1),
        "fingerprint": run,
        "warnings": warned,
    }
    return _fitted(parameters, plan, model, fusion, calibration, unseen, split, told)


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
    saved = Checkpoint(checkpoint, run, described)
    if resume and not saved.load():
        controls.progress.say(f"{saved.path}: nothing to resume; starting from the beginning")
    return run, controls._replace(saved=saved)


def _read_separate(
    separate: Source, plan: Plan, channels: int, parameters: Parameters, progress: Progress
) -> ImageSet:
    if parameters.calibration is not None:
        raise UserError(
            f"calibration={parameters.calibration:g} has no effect: {separate.described} "
            f"calibrates, and all other images are learnt from; leave one of the two out"
        )
    return read_calibration_images(
        separate, plan.geometry, channels, plan.smallest_side, parameters.strict, progress
    )


def _cross_fitted(
    plan: Plan,
    model: Model,
    features: dict[str, Tensor],
    images: ImageSet,
    groups: Tensor,
    split: Split,
    parameters: Parameters,
    progress: Progress,
) -> tuple[Outputs, Outputs]:
    """What scales say of images that they learnt from, had they not learnt from them or from others
    of their group: of all, to scale parts by, and of those to calibrate with.
    """
    fresh = partial(_fresh_scales, plan, images.pixels.shape[1], model.backbone)
    distances = cross_fit(fresh, levels_of(features), parameters.seed, progress, groups)
    size = 2 * (plan.geometry.side,)
    calibrating = [[part[split.calibration] for part in parts] for parts in distances]
    return (
        partial(outputs_of, model.on_features, distances, size),
        partial(outputs_of, model.on_features, calibrating, size),
    )


def _held_out(
    plan: Plan, model: Model, unseen: ImageSet, split: Split, progress: Progress
) -> tuple[Outputs, Outputs]:
    """What scales say of images that they did not learn from, to scale parts by and to calibrate
    with.
    """
    scaling, calibrating = (unseen.subset(n).pixels for n in (split.scaling, split.calibration))
    if plan.calibrated:
        measure_autoencoders(model, scaling, progress)
    return (
        partial(model.outputs, scaling, progress, "scaling scores"),
        partial(model.outputs, calibrating, progress, "calibrating"),
    )


def _fitted(
    parameters: Parameters,
    plan: Plan,
    model: Model,
    fusion: Fusion,
    calibration: Calibration,
    unseen: ImageSet,
    split: Split,
    told: dict[str, Any],
) -> FittedState:
    examples = unseen.pixels[split.calibration[:EXAMPLES]]
    fitted = FittedState(
        parameters=stored_parameters(parameters),
        geometry=plan.geometry,
        channels=unseen.pixels.shape[1],
        objective=plan.objective,
        backbone=model.backbone,
        scales=model.scales,
        fusion=fusion,
        calibration=calibration,
        examples=examples,
        example_scores=torch.zeros(len(examples)),
        provenance=told,
    )
    return replace(fitted, example_scores=fitted.score(examples).score)


def _fresh_scales(plan: Plan, channels: int, backbone: FrozenBackbone | None) -> list[Any]:
    side = plan.geometry.side
    return [build_scale(each, plan.objective, side, channels, backbone) for each in plan.settings]


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
    told["scales"] = parameters.scales and list(parameters.scales)
    # Of an encoder's file.
    told["pretrain"] = parameters.pretrain and Path(parameters.pretrain).name
    return told


def provenance(
    source: Source,
    separate: Source | None,
    images: ImageSet,
    split: Split,
    backbone: FrozenBackbone | None,
) -> dict[str, Any]:
    """When, where and from what a detector was made."""
    how = "held out" if len(split.training) < len(images) else "cross-fitted"
    return {
        "made_by": f"igd {__version__}",
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "source": source.described,
        "protocols": source.protocols,
        "images": len(split.training),
        **calibrated_with(split),
        "calibration": how,
        **described_groups(source if separate is None else separate),
        **({} if separate is None else described_calibration(separate)),
        "skipped": images.skipped,
        **record(images.sizes, images.modes),
        "backbone": backbone.backbone.name if backbone else "none",
        "weights": backbone.backbone.origin if backbone else "none",
    }
