"""`igd evaluate`: measure a model on labelled images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from igd.cli.common import (
    DONE,
    add_command,
    add_rate_flag,
    print_metrics,
    progress_of,
    use_rate,
    warnings_as_lines,
)
from igd.cli.data_flags import add_data_flags, add_group_flags, labelled_set
from igd.cli.image_arguments import check_order
from igd.text import visible


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "evaluate",
        run,
        "measure on labelled images",
        "igd evaluate parts.igd labelled/ --report report.html",
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument(
        "images",
        type=Path,
        help="folder with test/good, test/<defect> and ground_truth/<defect>, or another data set",
    )
    add_rate_flag(command)
    add_data_flags(command)
    add_group_flags(command)
    command.add_argument(
        "--seed", type=int, default=0, help="of --contamination (default: %(default)s)"
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first image that differs in colour mode, size or aspect ratio from those "
        "the model learnt from, is transparent or has further pages",
    )
    command.add_argument("--report", type=Path, help="HTML page to write")


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor
    from igd.evaluation.evaluate import evaluate
    from igd.files import check_writable

    check_order(options.model, [options.images], "evaluate")
    if options.report:
        check_writable(options.report)
    with warnings_as_lines():
        detector = load_predictor(options.model)
        dataset = labelled_set(options, detector.provenance_.get("protocols"))
    use_rate(options, detector)
    evaluation = evaluate(detector, dataset.test_samples(), progress_of(options), options.strict)
    if options.report:
        from igd.evaluation.report import write_report

        write_report(
            options.report,
            detector,
            evaluation,
            f"{options.images.resolve().name}: {options.model.name}",
        )
    print_metrics(options, {**evaluation.metrics, **detector.identity_})
    if options.report and not options.json:
        print(f"report: {visible(options.report)}")
    return DONE
