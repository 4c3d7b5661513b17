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
from igd.data.geometry import check_large_enough
from igd.data.image_set import ImageSet, check_one_size, decode
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
from igd.training.calibrate import Model, calibrate, fit_fusion, measure_autoencoders, odd_ones
from igd.training.crossfit import cross_fit, learn, outputs_of
from igd.training.diagnostics import check_scores
from igd.training.extract import extract_features, levels_of
from igd.training.fitted import FittedState
from igd.training.parameters import OWN, PLACES, Parameters
from igd.training.plan import FEWEST, Plan, make_backbone, make_plan
from igd.training.resume import Controls, fingerprint
from igd.training.split import Split, split_images
from igd.version import __version__

NAMED = 4  # odd images that are named
FLAT = 1.0  # grey levels, the spread of pixels in an image that shows nothing
Outputs = Callable[[], Iterator[list[ScaleOutput]]]
EXAMPLES = 8  # calibration images that the model file keeps


def fit(
    parameters: Parameters,
    source: Source,
    controls: Controls,
    checkpoint: Path | None,
    resume: bool,
) -> FittedState:
    """Plan, read, split; extract features and learn; fuse and calibrate."""
    started, progress = time.time(), controls.progress
    plan = make_plan(parameters, source)
    images = read_training_images(source, plan, parameters, progress)
    split = split_images(len(images), plan, parameters.seed)
    rate = choose_rate(parameters.max_false_alarms, len(split.calibration))
    training = images.subset(split.training).pixels
    run, controls = _begun(plan, parameters, training, controls, checkpoint, resume)

    backbone = make_backbone(plan, training, parameters.feature_cache, controls)
    model = Model(backbone, _fresh_scales(plan, training.shape[1], backbone))
    features = extract_features(backbone, model.scales, training, controls)
    learn(model.on_features, levels_of(features), parameters.seed)
    train_autoencoders(model.scales, training, features, parameters, controls)

    to_scale, to_calibrate = _unseen(
        plan, model, features, images, split, parameters.seed, progress
    )
    fusion = fit_fusion(to_scale(), plan.on_features) if plan.calibrated else Fusion()
    fusion, calibration = calibrate(to_calibrate(), fusion, rate)
    check_scores(calibration.scores)
    _name_odd_ones(calibration, [images.names[n] for n in split.calibration], progress)
    told = {"seconds": round(time.time() - started, 1), "fingerprint": run}
    told = {**provenance(source, images, split, backbone), **told}
    return _fitted(parameters, plan, model, fusion, calibration, images, split, told)


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


def _unseen(
    plan: Plan,
    model: Model,
    features: dict[str, Tensor],
    images: ImageSet,
    split: Split,
    seed: int,
    progress: Progress,
) -> tuple[Outputs, Outputs]:
    """What scales say of images that they did not learn from, to scale parts by and to calibrate
    with.
    """
    if plan.held_out is None:
        fresh = partial(_fresh_scales, plan, images.pixels.shape[1], model.backbone)
        distances = cross_fit(fresh, levels_of(features), seed, progress)
        outputs = partial(outputs_of, model.on_features, distances, 2 * (plan.geometry.side,))
        return outputs, outputs
    scaling, calibrating = (images.subset(n).pixels for n in (split.scaling, split.calibration))
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
    images: ImageSet,
    split: Split,
    told: dict[str, Any],
) -> FittedState:
    examples = images.pixels[split.calibration[:EXAMPLES]]
    fitted = FittedState(
        parameters=stored_parameters(parameters),
        geometry=plan.geometry,
        channels=images.pixels.shape[1],
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


def read_training_images(
    source: Source, plan: Plan, parameters: Parameters, progress: Progress
) -> ImageSet:
    """Decode the images, say which were left out, and refuse a set that can't be trained on."""
    images = decode(source, plan.geometry, strict=parameters.strict, progress=progress)
    if parameters.fit_to is None:
        check_one_size(images, source)
    for name, size in zip(images.names, images.sizes, strict=True):
        check_large_enough(name, size, plan.smallest_side)
    if len(images) < FEWEST:
        raise UserError(
            f"{source.described}: only {len(images)} of {len(source)} images can be read; 3 are "
            f"needed"
        )
    _check_contrast(images, source)
    return images


def _check_contrast(images: ImageSet, source: Source) -> None:
    """Refuse images with nothing on them: whatever is learnt from them calls anything normal."""
    flat = sum(
        float(images.pixels[torch.tensor([number])].float().std()) < FLAT
        for number in range(len(images))
    )
    if 2 * flat > len(images):
        raise UserError(
            f"{source.described}: {flat} of {len(images)} images are of one grey or colour all "
            f"over, so there is nothing to learn; is the lens covered, or the exposure wrong?"
        )


def _name_odd_ones(calibration: Calibration, names: list[str], progress: Progress) -> None:
    """They set the threshold, and are the user's to keep or to leave out."""
    odd = odd_ones(calibration.scores, names)
    if odd:
        shown = ", ".join(odd[:NAMED]) + (" ..." if len(odd) > NAMED else "")
        progress.say(
            f"{len(odd)} of {len(names)} normal images lie far above the rest and raise the "
            f"threshold: {shown}; leave them out if they are not normal (igd audit shows them)"
        )


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
    source: Source, images: ImageSet, split: Split, backbone: FrozenBackbone | None
) -> dict[str, Any]:
    """When, where and from what a detector was made."""
    unused = {*range(len(images))} - {*split.training.tolist(), *split.calibration.tolist()}
    return {
        "made_by": f"igd {__version__}",
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "source": source.described,
        "protocols": source.protocols,
        "images": len(split.training),
        "calibration_images": len(split.calibration),
        "measuring_images": len(unused),
        "calibration": "held out" if len(split.training) < len(images) else "cross-fitted",
        "skipped": images.skipped,
        **record(images.sizes, images.modes),
        "backbone": backbone.backbone.name if backbone else "none",
        "weights": backbone.backbone.origin if backbone else "none",
    }
