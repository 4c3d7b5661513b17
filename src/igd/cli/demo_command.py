"""`igd demo`: the main job, on images that come with igd."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from igd.cli.common import (
    DONE,
    add_command,
    print_metrics,
    progress_of,
    warnings_as_lines,
)


def add(commands: Any) -> None:
    command = add_command(
        commands, "demo", run, "train, evaluate and report on images that come with igd", "igd demo"
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path("igd-demo"),
        help="folder to write to (default: %(default)s)",
    )
    command.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> int:
    from igd.data.demo import make_demo
    from igd.data.reading import read_dataset
    from igd.detector import IGD
    from igd.evaluation.evaluate import evaluate
    from igd.evaluation.report import write_report
    from igd.files import make_folder
    from igd.training.parameters import check_seed

    check_seed(options.seed)
    out = make_folder(options.out)
    bricks = read_dataset(make_demo(out / "bricks", seed=options.seed))
    progress = progress_of(options)
    with warnings_as_lines():
        detector = IGD(image_size=192, seed=options.seed).fit(bricks, progress=progress)
    detector.save(out / "bricks.igd")
    evaluation = evaluate(detector, bricks.test_samples(), progress)
    write_report(out / "report.html", detector, evaluation, "igd demo: a brick wall")
    print_metrics(options, {**evaluation.metrics, **detector.identity_})
    if not options.json:
        print(f"model:  {out / 'bricks.igd'}\nreport: {(out / 'report.html').resolve()}")
    return DONE
