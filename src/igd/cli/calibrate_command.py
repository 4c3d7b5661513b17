"""`igd calibrate`: another threshold for a model that has learnt."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command, progress_of, refuse_export, warnings_as_lines
from igd.cli.data_flags import add_renewal_flags, good_images, groups_asked
from igd.errors import UserError
from igd.text import visible


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "calibrate",
        run,
        "set a model's threshold anew, without training",
        "igd calibrate parts.igd parts/relit -o parts-new.igd",
    )
    command.add_argument("model", type=Path, help="a model file, .igd")
    command.add_argument(
        "images",
        type=Path,
        nargs="?",
        help="good images that the model did not learn from, as the camera takes them now "
        "(without: only the rate changes)",
    )
    add_renewal_flags(command)


def run(options: argparse.Namespace) -> int:
    refuse_export(options.model, "calibrate")
    if options.images is None and options.max_false_alarms is None:
        raise UserError(
            "nothing to calibrate with; give a folder of good images, or another rate "
            "(--max-false-alarms)"
        )
    about_images = (*groups_asked(options).values(), options.root, options.normal_class)
    if options.images is None and (options.strict or any(about_images)):
        raise UserError(
            "groups, --root, --normal-class and --strict have no effect without images to "
            "calibrate with; give some, or leave these out"
        )
    from igd.detector import IGD
    from igd.files import check_model_path, locked

    target = options.output or options.model
    check_model_path(target)
    with locked(target, "writing"):
        detector = IGD.load(options.model)
        before = detector.threshold_, detector.false_alarm_rate_
        if options.images is None:
            detector.max_false_alarms = options.max_false_alarms
        else:
            detector.strict = options.strict
            with warnings_as_lines():
                detector.calibrate(
                    good_images(options, options.images),
                    max_false_alarms=options.max_false_alarms,
                    progress=progress_of(options),
                )
        detector.save(target)
    _print(options, detector, target, before)
    return DONE


def _print(
    options: argparse.Namespace, detector: Any, target: Path, before: tuple[float, float]
) -> None:
    if options.json:
        told = {
            "model": str(target),
            "threshold": detector.threshold_,
            "false_alarm_rate": detector.false_alarm_rate_,
            "former_threshold": before[0],
            "former_false_alarm_rate": before[1],
            **detector.identity_,
            **detector.provenance_,
        }
        print(json.dumps(told))
        return
    made, count = detector.provenance_, len(detector.calibration_.scores)
    print(
        f"{visible(target)}: scores above {detector.threshold_:.4f} are alarms, at most "
        f"{detector.false_alarm_rate_:.1%} of normal images"
        f"{' of new groups' if 'groups' in made else ''}, by {count} calibration images "
        f"(before: {before[0]:.4f}, {before[1]:.1%})"
    )
    if options.images is not None and made["measuring_images"]:
        print(f"{made['measuring_images']} more images centred the parts of the score")
