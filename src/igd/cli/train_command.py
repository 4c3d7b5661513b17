"""`igd train`: learn from normal images."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import (
    DONE,
    add_command,
    checkpoint_beside,
    interruptible,
    progress_of,
    warnings_as_lines,
)
from igd.cli.data_flags import add_data_flags, add_group_flags, good_images, training_set
from igd.cli.engine_flags import LOCAL, add_engine_flags, check_engine
from igd.cli.image_arguments import MODELS
from igd.errors import UserError
from igd.text import visible
from igd.training.parameters import Parameters

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from igd.detector import IGD


def add(commands: Any) -> None:
    command = add_command(
        commands, "train", run, "learn from normal images", "igd train parts/good -o parts.igd"
    )
    command.add_argument(
        "images", type=Path, help="folder of normal images, or a data set (docs/data.md)"
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        help="the model file to write, such as parts.igd",
    )
    command.add_argument(
        "--resume", action="store_true", help="go on where an interrupted training stopped"
    )
    command.add_argument(
        "--calibration-images",
        type=Path,
        metavar="FOLDER",
        help="other good images to set the threshold with; all of IMAGES are learnt from then",
    )
    add_data_flags(command)
    add_group_flags(command)
    command.add_argument(
        "--fraction",
        type=float,
        default=1,
        help="share of the training images to use (default: all)",
    )
    command.add_argument(
        "--each",
        action="store_true",
        help="IMAGES is a folder of categories: train a model for each, into the folder OUTPUT; "
        "with --resume, those that are missing",
    )
    add_engine_flags(command)
    command.add_argument(
        "--devices",
        type=int,
        default=1,
        help="processes that share the training, on GPUs or cores of this machine (docs/scale.md; "
        "default: %(default)s)",
    )
    command.add_argument(
        "--nodes",
        type=int,
        default=1,
        help="machines that share it, each with so many, on which this command runs with "
        "MASTER_ADDR and NODE_RANK set (default: %(default)s)",
    )
    add_training_flags(command)


def run(options: argparse.Namespace) -> int:
    from igd.files import check_model_path

    if options.images.suffix.lower() in MODELS:
        raise UserError(
            f"{options.images}: is a model; igd train takes normal images, and -o names the model "
            f"to write"
        )
    parameters = parameters_of(options)
    if options.each:
        from igd.cli.train_each import run_each

        check_engine(options)
        return run_each(options, parameters)
    if options.engine != LOCAL or options.address or options.workers:
        raise UserError("--engine ray is for --each; --devices divides one training")
    check_model_path(options.output)
    from igd.training.distributed import is_launched, launch, make_fabric

    if is_launched():
        return _train(options, parameters, make_fabric(options.device, options.precision))
    if (options.devices, options.nodes) != (1, 1):
        command = ["-m", "igd.cli", *options.given]
        return launch(command, options.devices, options.nodes)
    return _train(options, parameters, None)


def _train(options: argparse.Namespace, parameters: dict[str, Any], fabric: Fabric | None) -> int:
    """Train, alone or as one of several processes, of which the first writes and prints."""
    from igd.detector import IGD
    from igd.files import locked

    first = fabric is None or fabric.global_rank == 0
    target, detector = options.output, IGD(**parameters)
    with locked(target, "training") if first else nullcontext():
        checkpoint = checkpoint_beside(options)
        dataset = training_set(options, options.fraction)
        with warnings_as_lines():
            separate = options.calibration_images and good_images(
                options, options.calibration_images, is_second=True
            )
        with interruptible() as stop, warnings_as_lines(first):
            detector.fit(
                dataset,
                checkpoint=checkpoint,
                resume=options.resume,
                calibration_images=separate,
                progress=progress_of(options) if first else None,
                stop=stop,
                fabric=fabric,
            )
        if not first:
            return DONE
        # Until here the checkpoint stays: a full disk costs nothing that was learnt.
        detector.save(target)
        checkpoint.unlink(missing_ok=True)
    _report(options, detector)
    return DONE


def _report(options: argparse.Namespace, detector: IGD) -> None:
    """What was learnt, and what is promised."""
    target = options.output
    if options.json:
        print(
            json.dumps(
                {
                    "model": str(target),
                    "threshold": detector.threshold_,
                    **detector.identity_,
                    **detector.provenance_,
                }
            )
        )
    else:
        made = detector.provenance_
        calibrated = f"the {made['calibration_images']} held out"
        if made["calibration"] == "cross-fitted" and "groups" in made:
            calibrated = (
                f"an image of each of {made['groups']} groups, scored by a model that learnt from "
                f"none of its group"
            )
        elif made["calibration"] == "cross-fitted":
            calibrated = "all of them, each scored by a model that did not learn from it"
        elif made["calibration"] == "separate images":
            calibrated = f"{made['calibration_images']} images of {made['calibration_source']}"
        if made["measuring_images"]:
            calibrated += f" ({made['measuring_images']} more scaled the parts of the score)"
        print(
            f"{visible(target)}: learnt from {made['images']} images in {made['seconds']:.0f} s "
            f"(recipe {options.recipe}, seed {options.seed}); scores above "
            f"{detector.threshold_:.4f} are alarms, at most {detector.false_alarm_rate_:.1%} of "
            f"normal images{' of new groups' if 'groups' in made else ''} by {visible(calibrated)}"
        )


def add_training_flags(command: argparse.ArgumentParser) -> None:
    """A flag for each parameter of a training, under its own name."""
    for each in fields(Parameters):
        told = dict(each.metadata)
        flag = told.pop("flag", "--" + each.name.replace("_", "-"))
        command.add_argument(flag, dest=each.name, default=each.default, **told)


def parameters_of(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of `add_training_flags` say, for the constructor."""
    return {each.name: getattr(options, each.name) for each in fields(Parameters)}
