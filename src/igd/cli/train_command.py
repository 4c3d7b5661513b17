"""`igd train`: learn from normal images."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from igd.cli.common import (
    DONE,
    add_command,
    add_data_flags,
    add_group_flags,
    checkpoint_beside,
    groups_asked,
    interruptible,
    progress_of,
    training_set,
    warnings_as_lines,
)
from igd.cli.image_arguments import MODELS
from igd.errors import UserError
from igd.text import visible
from igd.training.parameters import Parameters


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
    add_training_flags(command)


def run(options: argparse.Namespace) -> int:
    from igd.data.reading import read_dataset
    from igd.detector import IGD
    from igd.files import check_writable, locked

    if options.images.suffix.lower() in MODELS:
        raise UserError(
            f"{options.images}: is a model; igd train takes normal images, and -o names the model "
            f"to write"
        )
    check_writable(options.output)
    target, detector = options.output, IGD(**parameters_of(options))
    with locked(target, "training"):
        checkpoint = checkpoint_beside(options)
        dataset = training_set(options, options.fraction)
        with warnings_as_lines():
            separate = options.calibration_images and read_dataset(
                options.calibration_images, **groups_asked(options)
            )
        with interruptible() as stop, warnings_as_lines():
            detector.fit(
                dataset,
                checkpoint=checkpoint,
                resume=options.resume,
                calibration_images=separate,
                progress=progress_of(options),
                stop=stop,
            )
        # Until here the checkpoint stays: a full disk costs nothing that was learnt.
        detector.save(target)
        checkpoint.unlink(missing_ok=True)
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
    return DONE


def add_training_flags(command: argparse.ArgumentParser) -> None:
    """A flag for each parameter of a training, under its own name."""
    for each in fields(Parameters):
        told = dict(each.metadata)
        flag = told.pop("flag", "--" + each.name.replace("_", "-"))
        command.add_argument(flag, dest=each.name, default=each.default, **told)


def parameters_of(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of `add_training_flags` say, for the constructor."""
    return {each.name: getattr(options, each.name) for each in fields(Parameters)}
