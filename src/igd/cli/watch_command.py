"""`igd watch`: score what arrives in a folder, each file once, across restarts; or what a camera
sees.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from igd.cli.common import (
    DONE,
    add_command,
    add_rate_flag,
    interruptible,
    use_rate,
    warnings_as_lines,
)
from igd.cli.image_arguments import check_order, check_out
from igd.cli.verdict_lines import Verdicts, made_from
from igd.errors import UserError
from igd.text import visible

if TYPE_CHECKING:
    from igd.evaluation.results import Results
    from igd.inference.predictor import Prediction

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
        "score what arrives in a folder, or what a camera sees",
        "igd watch parts.igd incoming/ --out results/",
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument("folder", type=Path, nargs="?", help="folder in which images arrive")
    command.add_argument(
        "--camera",
        metavar="NUMBER|ADDRESS",
        help="frames of a camera in place of a folder: 0 is the first of this machine (Linux), "
        "rtsp://... one of the network, a clip is played as if it were one",
    )
    add_rate_flag(command)
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
        help="seconds between two looks, or frames of a camera; a file is scored when it did not "
        "change between them (default: %(default)s)",
    )
    command.add_argument(
        "--once",
        action="store_true",
        help="score what is there and not yet scored, or one frame, then end",
    )


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor
    from igd.evaluation.results import Results
    from igd.files import check_readable, locked, make_folder

    if (options.folder is None) == (options.camera is None):
        raise UserError("give a folder in which images arrive, or a camera (--camera 0)")
    check_order(options.model, [options.folder] if options.folder else [], "watch")
    if options.folder and not options.folder.is_dir():
        raise UserError(f"{options.folder}: no such folder; igd watch waits for images in one")
    if options.folder:
        check_readable(options.folder)
    check_out(options.out, [options.folder] if options.folder else [])
    if options.every <= 0:
        raise UserError(f"--every {options.every:g}: give a number of seconds above 0")
    with warnings_as_lines():
        predictor = load_predictor(options.model)
    use_rate(options, predictor)
    with locked(make_folder(options.out) / "scores", "writing to"), interruptible() as stop:
        origin = made_from(options.model, predictor)
        results = Results(options.out, predictor, made_from=origin, resume=True)
        verdicts = Verdicts(predictor, results, as_json=options.json, shown=True)
        verdicts.say_drift()  # of an earlier call
        if options.camera:
            score_camera(options, verdicts, stop)
        else:
            for paths in arrivals(options, results, stop):
                score_files(paths, options.folder, verdicts, results)
    verdicts.close()
    return DONE


def arrivals(options: argparse.Namespace, results: Results, stop: Any) -> Iterator[list[Path]]:
    """Images that have arrived whole and have no score yet, look after look, until it is stopped.
    One that could not be read comes again when its file has changed.
    """
    before: dict[Path, Arrival] = {}
    tried: dict[Path, Arrival] = {}
    finished: set[Path] = set()
    while True:
        now = _waiting(options.folder, options.out, finished)
        whole = {
            path: _images_of(path)
            for path, seen in now.items()
            if tried.get(path) != seen and (options.once or before.get(path) == seen)
        }
        yield [image for images in whole.values() for image in images if not results.has(image)]
        finished |= {path for path, images in whole.items() if all(map(results.has, images))}
        tried |= {path: now[path] for path in whole}
        before = now
        if options.once or _stopped_within(options.every, stop):
            return


def _images_of(path: Path) -> list[Path]:
    """The pages of a file, or itself; none of a clip, and a line that says so."""
    from igd.data.frames import images_in, is_clip

    if not is_clip(path):
        return images_in(path)
    print(
        f"igd: {visible(path)}: clips are not watched; igd predict scores their frames",
        file=sys.stderr,
    )
    return []


def score_files(paths: list[Path], folder: Path, verdicts: Verdicts, results: Results) -> None:
    """Score images and write their rows, each as soon as it is known."""
    results.score_again(paths)
    predictions = verdicts.predictor.predictions(paths, keep_images=True) if paths else ()
    for path, predicted in zip(paths, predictions, strict=True):
        _add(verdicts, str(path), str(path.relative_to(folder)), predicted)


def score_camera(options: argparse.Namespace, verdicts: Verdicts, stop: Any) -> None:
    """Score a frame now and then; its name is the time at which it was taken."""
    from igd.data.formats.video import SILENCE, camera_frames

    predictor, due = verdicts.predictor, time.monotonic() + SILENCE
    with closing(camera_frames(options.camera)) as frames:
        for frame in frames:
            if stop():
                return
            if frame is None:
                if time.monotonic() > due:
                    print(
                        f"igd: camera {visible(options.camera)}: no frame for {SILENCE:g} s; igd "
                        f"waits until one comes (Ctrl-C ends it)",
                        file=sys.stderr,
                    )
                    due = math.inf  # said once
                continue
            taken = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
            name = f"camera-{taken}"
            (predicted,) = predictor.predictions([frame], keep_images=True)
            _add(verdicts, name, name, predicted)
            if options.once or _stopped_within(options.every, stop):
                return
            due = time.monotonic() + SILENCE


def _add(verdicts: Verdicts, path: str, name: str, predicted: Prediction | UserError) -> None:
    if verdicts.add(path, name, predicted):
        verdicts.say_drift()


def _waiting(folder: Path, out: Path, finished: set[Path]) -> dict[Path, Arrival]:
    """Files that are not finished, and what they look like; hidden ones are none yet."""
    from igd.data.decoding import SUFFIXES, files_below
    from igd.data.frames import CLIPS

    found = {}
    for path in sorted(files_below(folder)):
        if path.suffix.lower() not in (*SUFFIXES, *CLIPS) or path.name.startswith("."):
            continue
        if path in finished or out.resolve() in path.resolve().parents:
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
