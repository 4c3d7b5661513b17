"""`igd train --each`: a model for each category of a folder, and a table of them."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext
from typing import Any

from igd.cli.common import DONE, FAILED, interruptible, progress_of
from igd.cli.engine_flags import RAY, ray_cluster
from igd.engines.many_models import SUFFIX, TrainedCategory, categories, train_each
from igd.errors import Interrupted, UserError
from igd.files import locked, make_folder
from igd.text import visible

# Flags that speak of one data set or of one training.
ALONE = ("root", "normal_class", "contamination", "calibration_images", "group", "group_by")


def run_each(options: argparse.Namespace, parameters: dict[str, Any]) -> int:
    """Train all categories whose models are missing, or all of them."""
    for name in ALONE:
        if getattr(options, name) is not None:
            raise UserError(f"--{name.replace('_', '-')} is not for --each: train that set alone")
    if options.fraction != 1 or (options.devices, options.nodes) != (1, 1):
        raise UserError("--fraction, --devices and --nodes are not for --each; leave them out")
    folders, output = categories(options.images), make_folder(options.output)
    there = {path.stem for path in output.glob(f"*{SUFFIX}")} if options.resume else set()
    left = [folder for folder in folders if folder.name not in there]
    if len(left) < len(folders):
        had = len(folders) - len(left)
        print(f"igd: {had} of {len(folders)} categories have models", file=sys.stderr)
    printed, trained = sys.stdout, list[TrainedCategory]()
    with locked(output / "models", "training"), interruptible() as stop:
        cluster = ray_cluster(options) if options.engine == RAY and left else nullcontext(None)
        with cluster as workers:
            progress = progress_of(options)
            coming = train_each(left, output, parameters, workers, stop)
            for each in progress.track(coming, len(left), "training categories"):
                trained.append(each)
                if options.json:
                    print(json.dumps(each._asdict()), file=printed, flush=True)
    if not options.json and trained:
        _print_table(trained)
    if len(trained) < len(left):
        raise Interrupted("stopped; go on with --resume")
    failed = sum(each.error is not None for each in trained)
    if not options.json:
        print(f"{visible(output)}: {len(trained) - failed} models, {failed} failed")
    return FAILED if failed else DONE


def _print_table(trained: list[TrainedCategory]) -> None:
    """Which category has which model, and what needs attention."""
    wide = max(8, *(len(visible(each.category)) for each in trained)) + 2
    print(f"{'category':<{wide}}{'images':>7}{'promised':>10}{'threshold':>11}{'seconds':>9}")
    for each in sorted(trained):
        name = f"{visible(each.category):<{wide}}"
        if each.error is not None:
            print(f"{name}failed: {visible(each.error)}")
            continue
        rate, threshold = f"{each.promised_rate:.1%}", f"{each.threshold:.4f}"
        print(f"{name}{each.images:>7}{rate:>10}{threshold:>11}{each.seconds:>9.0f}")
        for warning in each.warnings:
            print(f"{'':<{wide}}{visible(warning)}")
