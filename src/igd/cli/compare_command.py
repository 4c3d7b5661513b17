"""`igd compare`: two models on the same labelled images."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import DONE, add_command, progress_of, warnings_as_lines
from igd.cli.data_flags import add_data_flags, add_group_flags, labelled_set
from igd.cli.image_arguments import check_order
from igd.errors import UserError
from igd.text import visible

if TYPE_CHECKING:
    from igd.evaluation.compare_models import ModelComparison
    from igd.evaluation.evaluate import Evaluation, ScoredSample

FIGURES = ("image_auroc", "average_precision", "f1_at_threshold", "pixel_auroc", "aupro")
NAMED = 20  # images with differing verdicts, for people; --json has all


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "compare",
        run,
        "measure two models on the same labelled images",
        "igd compare parts.igd parts-new.igd labelled/",
    )
    command.add_argument("first", type=Path, help="a model file, .igd or .onnx")
    command.add_argument("second", type=Path, help="another")
    command.add_argument(
        "images",
        type=Path,
        help="folder with test/good, test/<defect> and ground_truth/<defect>, or another data set",
    )
    add_data_flags(command)
    add_group_flags(command)
    command.add_argument(
        "--seed", type=int, default=0, help="of --contamination (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor
    from igd.evaluation.compare_models import compare_models

    for model in (options.first, options.second):
        check_order(model, [options.images], "compare")
    with warnings_as_lines():
        one, other = load_predictor(options.first), load_predictor(options.second)
        found = [labelled_set(options, _provenance(each).get("protocols")) for each in (one, other)]
    sets = [each.test_samples() for each in found]
    first, second = ([sample.identifier for sample in each] for each in sets)
    if first != second:
        raise UserError(
            f"{options.first} and {options.second} were trained under different protocols, so that "
            f"their test images differ; say which to use, such as --contamination 0"
        )
    compared = compare_models(one, other, sets[0], progress_of(options))
    if options.json:
        paths = {"first_model": str(options.first), "second_model": str(options.second)}
        print(json.dumps({**paths, **compared.to_json()}))
        return DONE
    _print(compared, [visible(options.first), visible(options.second)])
    return DONE


def _provenance(model: Any) -> dict[str, Any]:
    return dict(model.provenance_)


def _print(compared: ModelComparison, names: list[str]) -> None:
    width = max(18, *(len(name) + 2 for name in names))
    both = (compared.first, compared.second)
    print(f"{'':<24}{names[0]:<{width}}{names[1]}")
    rows = [(name, [_figure(each.metrics[name]) for each in both]) for name in FIGURES]
    rows.append(("threshold's promise", [_promise(each) for each in both]))
    rows.append(("misses", [_count(each, 1) for each in both]))
    rows.append(("false alarms", [_count(each, 0) for each in both]))
    for name, figures in rows:
        print(f"{name:<24}{figures[0]:<{width}}{figures[1]}")
    if compared.difference is not None and compared.interval is not None:
        low, high = compared.interval
        print(
            f"image_auroc, second minus first: {compared.difference:+.4f}  (95 %: {low:+.4f} to "
            f"{high:+.4f}, paired bootstrap)"
        )
    print(compared.in_words)
    differing = compared.differing
    total = len(compared.first.predicted)
    print(f"verdicts differ on {len(differing)} of {total} images")
    for one, other in differing[:NAMED]:
        truth = "anomalous" if one.sample.label else "normal"
        print(
            f"  {truth:<10} first {_verdict(one)}  second {_verdict(other)}  "
            f"{visible(one.sample.identifier)}"
        )
    if len(differing) > NAMED:
        print(f"  ... and {len(differing) - NAMED} more (--json has all)")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _promise(evaluation: Evaluation) -> str:
    return f"{evaluation.metrics['promised_false_alarm_rate']:.1%}"


def _count(evaluation: Evaluation, label: int) -> str:
    """Mistakes at the model's own threshold, among images with this label."""
    verdicts = [each.is_anomalous for each in evaluation.predicted if each.sample.label == label]
    wrong = sum(verdict != bool(label) for verdict in verdicts)
    return f"{wrong} of {len(verdicts)}"


def _verdict(scored: ScoredSample) -> str:
    return f"{'ALARM ' if scored.is_anomalous else 'normal'} (p {scored.p_value:.3f})"
