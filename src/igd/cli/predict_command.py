"""`igd predict`: score images."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import (
    DONE,
    FAILED,
    add_command,
    add_rate_flag,
    progress_of,
    use_rate,
    warnings_as_lines,
)
from igd.cli.image_arguments import check_order, image_paths
from igd.cli.verdicts import Verdicts, made_from
from igd.errors import UserError
from igd.text import visible

if TYPE_CHECKING:
    from igd.inference.predictor import Predictor


def add(commands: Any) -> None:
    command = add_command(
        commands, "predict", run, "score images", "igd predict parts.igd parts/new --out results/"
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument(
        "images",
        type=Path,
        nargs="+",
        help="image files, clips (.mp4 .mov .avi .mkv .webm), folders of them, quoted patterns, or "
        "- for paths on standard input",
    )
    command.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="of clips, score one in N frames (default: all of them)",
    )
    add_rate_flag(command)
    command.add_argument("--out", type=Path, help="folder for scores and anomaly maps")
    command.add_argument(
        "--format",
        choices=("csv", "jsonl"),
        default="csv",
        help="of the scores in that folder: scores.csv or scores.jsonl",
    )
    command.add_argument(
        "--maps",
        choices=("npy", "png16"),
        help=(
            "write raw maps to OUT/maps too: float32 .npy, or 16-bit .png in which 0..65535 "
            "means 0..1"
        ),
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="go on where an earlier call with the same --out ended",
    )
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the scores of an earlier call with the same --out",
    )
    command.add_argument(
        "--skip-unreadable",
        action="store_true",
        help="exit with 0 where some images can't be read (their rows say so in any case)",
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first image that can't be read, differs in colour mode, size or aspect "
        "ratio from those the model learnt from, is transparent or has further pages",
    )


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor
    from igd.files import locked, make_folder

    if options.resume and not options.out:
        raise UserError("--resume goes on with the scores of a folder; add --out FOLDER")
    if options.overwrite and options.resume:
        raise UserError("--overwrite starts anew and --resume goes on; give one of them")
    if options.maps and not options.out:
        raise UserError(f"--maps {options.maps} needs a folder to write to; add --out FOLDER")
    if options.every < 1:
        raise UserError(f"--every {options.every}: give a number of frames, 1 or more")
    images = image_paths(options.images)
    check_order(options.model, images, "predict")
    with warnings_as_lines():
        predictor = load_predictor(options.model)
    use_rate(options, predictor)
    named = _named(images, options.out, options.every)
    if not options.out:
        return _predict(options, predictor, named)
    with locked(make_folder(options.out) / "scores", "writing to"):
        return _predict(options, predictor, named)


def _predict(options: argparse.Namespace, predictor: Predictor, named: dict[Path, str]) -> int:
    from igd.evaluation.results import Results, as_written
    from igd.inference.predictor import Timing

    paths, results, done = list(named), None, set[int]()
    if options.out:
        results = Results(
            options.out,
            predictor,
            options.format,
            options.maps,
            made_from=made_from(options.model, predictor),
            resume=options.resume,
            overwrite=options.overwrite,
        )
        done = {n for n, path in enumerate(paths) if as_written(str(path)) in results.done}
    verdicts = Verdicts(
        predictor, results, as_json=options.json, shown=not results, strict=options.strict
    )
    timing, started = Timing(), time.perf_counter()
    predictions = predictor.predictions(
        paths, progress=progress_of(options), timing=timing, keep_images=bool(results), skip=done
    )
    left = [path for n, path in enumerate(paths) if n not in done]
    for path, prediction in zip(left, predictions, strict=True):
        verdicts.add(str(path), named[path], prediction)
    if verdicts.drift.notice:
        print(f"igd: {verdicts.drift.notice}", file=sys.stderr)
    if options.verbose:
        print(
            f"igd: {len(left)} images in {time.perf_counter() - started:.2f} s: "
            f"{timing.model:.2f} s in the model; "
            f"decoding took {timing.decoding:.2f} s of threads beside it",
            file=sys.stderr,
        )
    tally = verdicts.tally
    if tally.unreadable == tally.images:
        raise UserError(f"none of the {tally.images} images could be read")
    if results and not options.json:
        print(f"{visible(options.out)}: scores.{options.format} and anomaly maps")
    verdicts.close()
    return FAILED if tally.unreadable and not options.skip_unreadable else DONE


def _named(given: Sequence[Path], out: Path | None, every: int) -> dict[Path, str]:
    """The images of files and folders, one in `every` frames of clips, without earlier results
    among them, each with the name of its anomaly map: its path below the folder that holds all.
    """
    from igd.data.decoding import find_frames

    found = dict.fromkeys(
        path
        for each in given
        for path in find_frames(each, every)
        if out is None or out.resolve() not in path.resolve().parents
    )
    folders = [(each if each.is_dir() else each.parent).resolve() for each in given]
    try:
        common = Path(os.path.commonpath(folders))
    except ValueError:  # on several drives
        common = Path("/")
    # A link keeps its own name: several may lead to one image.
    names = (os.path.relpath(path.parent.resolve() / path.name, common) for path in found)
    return dict(zip(found, names, strict=True))
