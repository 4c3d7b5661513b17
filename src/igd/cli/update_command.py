"""`igd update`: more good images for a model that has learnt."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command, progress_of, refuse_export, warnings_as_lines
from igd.cli.data_flags import add_renewal_flags, good_images
from igd.cli.image_arguments import check_order
from igd.text import visible


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "update",
        run,
        "let a model learn from more good images, without those before",
        "igd update parts.igd parts/relit -o parts-new.igd",
    )
    command.add_argument("model", type=Path, help="a model file, .igd")
    command.add_argument(
        "images", type=Path, help="good images that the model did not learn from, or a data set"
    )
    add_renewal_flags(command)


def run(options: argparse.Namespace) -> int:
    refuse_export(options.model, "update")
    check_order(options.model, [options.images], "update")
    from igd.detector import IGD
    from igd.files import check_model_path, locked

    target = options.output or options.model
    check_model_path(target)
    with locked(target, "writing"), warnings_as_lines():
        detector = IGD.load(options.model)
        detector.strict = options.strict
        detector.update(
            good_images(options, options.images),
            max_false_alarms=options.max_false_alarms,
            progress=progress_of(options),
        )
        detector.save(target)
    made = detector.provenance_
    if options.json:
        told = {
            "model": str(target),
            "threshold": detector.threshold_,
            "false_alarm_rate": detector.false_alarm_rate_,
            **detector.identity_,
            **made,
        }
        print(json.dumps(told))
        return DONE
    latest = made["updates"][-1]
    print(
        f"{visible(target)}: learnt from {latest['images']} more images, {made['images']} in all; "
        f"of {latest['calibration_images']} new ones {latest['alarms_before']} were alarms before, "
        f"and {latest['alarms']} are for a model that learnt from the others; at most "
        f"{detector.false_alarm_rate_:.1%} of normal images{' of new groups' * ('groups' in made)},"
        f" former and new ones together, score above {detector.threshold_:.4f}"
    )
    return DONE
