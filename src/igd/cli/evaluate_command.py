"""`igd evaluate`: measure a model on labelled images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import (
    DONE,
    add_command,
    add_data_flags,
    identity,
    print_metrics,
    progress_of,
    warnings_as_lines,
)
from igd.cli.image_arguments import check_order

if TYPE_CHECKING:
    from igd.data.dataset import Dataset
    from igd.inference.predictor import Predictor


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "evaluate",
        run,
        "measure on labelled images",
        "igd evaluate parts.igd bottle/ --report report.html",
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument(
        "images",
        type=Path,
        help="folder with test/good, test/<defect> and ground_truth/<defect>, or another data set",
    )
    add_data_flags(command)
    command.add_argument(
        "--seed", type=int, default=0, help="of --contamination (default: %(default)s)"
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
    evaluation = evaluate(
        detector, _test_set(options, detector).test_samples(), progress_of(options)
    )
    if options.report:
        from igd.evaluation.report import write_report

        write_report(
            options.report,
            detector,
            evaluation,
            f"{options.images.resolve().name}: {options.model.name}",
        )
    print_metrics(options, {**evaluation.metrics, **identity(detector)})
    if options.report and not options.json:
        print(f"report: {options.report}")
    return DONE


def _test_set(options: argparse.Namespace, detector: Predictor) -> Dataset:
    """The data set under the protocols given here or, where none is, under those that the model was
    trained with.
    """
    from igd.data.protocols import apply_protocols, repeat_for_testing
    from igd.data.reading import read_dataset
    from igd.training.parameters import check_seed

    check_seed(options.seed)
    with warnings_as_lines():
        dataset = read_dataset(options.images, root=options.root)
    if options.normal_class is None and options.contamination is None:
        return repeat_for_testing(dataset, detector.provenance_.get("protocols"))
    return apply_protocols(
        dataset,
        normal_class=options.normal_class,
        contaminated=options.contamination or 0,
        seed=options.seed,
    )
