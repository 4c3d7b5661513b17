"""`igd predict`: score images."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command, progress_of
from igd.errors import UserError


def add(commands: Any) -> None:
    command = add_command(commands, "predict", run, "score images", "igd predict parts.igd parts/new --out results/")
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument("images", type=Path, nargs="+", help="image files or folders of them")
    command.add_argument("--out", type=Path, help="folder for scores and heat maps")
    command.add_argument(
        "--format", choices=("csv", "jsonl"), default="csv", help="of the scores in that folder: scores.csv or scores.jsonl"
    )
    command.add_argument(
        "--maps",
        choices=("npy", "png16"),
        help="write raw maps to OUT/maps too: float32 .npy, or 16-bit .png in which 0..65535 means 0..1",
    )
    command.add_argument("--strict", action="store_true", help="refuse unreadable images instead of leaving them out")


def run(options: argparse.Namespace) -> int:
    from igd.deploy.models import load_judge
    from igd.evaluation.results import Results
    from igd.judging import Prediction
    from igd.timing import Timing

    if options.maps and not options.out:
        raise UserError(f"--maps {options.maps} needs a folder to write to; add --out FOLDER")
    judge = load_judge(options.model)
    named = dict(item for given in options.images for item in _images(given, options.out))
    paths = list(named)
    results = Results(options.out, judge, options.format, options.maps) if options.out else None
    failures, timing, started = 0, Timing(), time.perf_counter()
    predictions = judge.predictions(paths, progress=progress_of(options), timing=timing, keep_images=bool(results))
    for path, prediction in zip(paths, predictions, strict=True):
        if not isinstance(prediction, Prediction):
            if options.strict:
                raise prediction
            failures += 1
            print(f"igd: left out: {prediction}", file=sys.stderr)
            continue
        row = {name: getattr(prediction, name) for name in ("score", "p_value", "is_anomalous")}
        row = {"path": str(path), **row}
        if results:
            results.write(named[path], row, prediction)
        if options.json:
            print(json.dumps(row), flush=True)
        elif not results:
            verdict = "ANOMALOUS" if prediction.is_anomalous else "normal"
            print(f"{verdict:<9}  score {prediction.score:.4f}  p {prediction.p_value:.4f}  {path}", flush=True)
    if options.verbose:
        print(
            f"igd: {len(paths)} images in {time.perf_counter() - started:.2f} s: {timing.model:.2f} s in the model; "
            f"decoding took {timing.decoding:.2f} s of threads beside it",
            file=sys.stderr,
        )
    if failures == len(paths):
        raise UserError(f"none of the {len(paths)} images could be read")
    if results and not options.json:
        print(f"{options.out}: scores.{options.format} and heat maps of {len(paths) - failures} images")
    return DONE


def _images(given: Path, out: Path | None) -> list[tuple[Path, str]]:
    """The images of a file or folder, without earlier results in it, each with the name of its heat map."""
    from igd.data.images import find_images

    inside = given if given.is_dir() else given.parent
    found = [path for path in find_images(given) if out is None or out.resolve() not in path.resolve().parents]
    names = ("_".join(path.relative_to(inside).parts) for path in found)
    return [(path, name.replace(".", "_")) for path, name in zip(found, names, strict=True)]
