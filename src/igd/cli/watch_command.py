"""`igd watch`: score what arrives in a folder, each file once, across restarts."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from igd.cli.common import DONE, add_command, interruptible, warnings_as_lines
from igd.cli.image_arguments import check_order
from igd.errors import UserError
from igd.text import visible

if TYPE_CHECKING:
    from igd.evaluation.results import Results
    from igd.inference.predictor import Predictor

PATIENCE = 0.1  # seconds between two looks at whether to stop


class Arrival(NamedTuple):
    """A file as it was at one look; one that is still being written changes until the next."""

    size: int
    modified: int


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "watch",
        run,
        "score what arrives in a folder",
        "igd watch parts.igd incoming/ --out results/",
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument("folder", type=Path, help="folder in which images arrive")
    command.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for scores.csv and anomaly maps; a later call goes on with it",
    )
    command.add_argument(
        "--every",
        type=float,
        default=1.0,
        help="seconds between two looks; a file is scored when it did not change between them "
        "(default: %(default)s)",
    )
    command.add_argument(
        "--once", action="store_true", help="score what is there and not yet scored, then end"
    )


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor
    from igd.evaluation.results import Results
    from igd.files import locked, make_folder

    check_order(options.model, [options.folder], "watch")
    if not options.folder.is_dir():
        raise UserError(f"{options.folder}: no such folder; igd watch waits for images in one")
    if options.every <= 0:
        raise UserError(f"--every {options.every:g}: give a number of seconds above 0")
    with warnings_as_lines():
        predictor = load_predictor(options.model)
    with locked(make_folder(options.out) / "scores", "writing to"), interruptible() as stop:
        made_from = {"model": hashlib.sha256(options.model.read_bytes()).hexdigest()}
        results = Results(options.out, predictor, made_from=made_from, resume=True)
        for paths in arrivals(options, results, stop):
            for row in score(paths, options.folder, predictor, results):
                _print(row, options.json)
    print(f"igd: {results.tally}", file=sys.stderr)
    return DONE


def arrivals(options: argparse.Namespace, results: Results, stop: Any) -> Iterator[list[Path]]:
    """Images that have arrived whole and have no row yet, look after look, until it is stopped."""
    before: dict[Path, Arrival] = {}
    while True:
        now = _waiting(options.folder, options.out, results.done)
        yield [path for path, seen in now.items() if options.once or before.get(path) == seen]
        before = now
        if options.once or _stopped_within(options.every, stop):
            return


def score(
    paths: list[Path], folder: Path, predictor: Predictor, results: Results
) -> Iterator[dict[str, Any]]:
    """Score images and write their rows, each as soon as it is known."""
    from igd.evaluation.results import as_row, as_written

    predictions = predictor.predictions(paths, keep_images=True) if paths else ()
    for path, predicted in zip(paths, predictions, strict=True):
        row = as_row(str(path), predicted, predictor)
        results.write(str(path.relative_to(folder)), row, predicted)
        results.done.add(as_written(str(path)))
        yield row


def _waiting(folder: Path, out: Path, done: set[str]) -> dict[Path, Arrival]:
    """Images without a row, and what their files look like; hidden ones are none yet."""
    from igd.data.decoding import SUFFIXES
    from igd.evaluation.results import as_written

    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        if as_written(str(path)) in done or out.resolve() in path.resolve().parents:
            continue
        try:
            told = path.stat()
        except OSError:  # gone since it was listed
            continue
        if path.is_file():
            found[path] = Arrival(told.st_size, told.st_mtime_ns)
    return found


def _stopped_within(seconds: float, stop: Any) -> bool:
    """Wait, unless a signal comes."""
    until = time.monotonic() + seconds
    while not stop() and time.monotonic() < until:
        time.sleep(min(PATIENCE, seconds))
    return bool(stop())


def _print(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(row), flush=True)
        return
    verdict = "ANOMALOUS" if row["is_anomalous"] else "normal"
    told = f"{verdict:<9}  score {row['score']:.4f}" if row["error"] is None else "unreadable"
    print(f"{told}  {visible(row['path'])}", flush=True)
