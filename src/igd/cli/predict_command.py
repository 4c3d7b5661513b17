"""`igd predict`: score images."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
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
from igd.cli.engine_flags import RAY, add_engine_flags, check_engine
from igd.cli.image_arguments import Place, check_order, check_out, image_paths, named_images, place
from igd.cli.verdict_lines import Verdicts, made_from
from igd.cpu import threads
from igd.errors import UserError
from igd.text import visible

if TYPE_CHECKING:
    from igd.evaluation.results import Tally
    from igd.inference.predictor import Predictor


MANY = 64  # images, from which on it matters more how many are scored than how soon each is


def add(commands: Any) -> None:
    command = add_command(
        commands, "predict", run, "score images", "igd predict parts.igd parts/new --out results/"
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")
    command.add_argument(
        "images",
        type=place,
        nargs="+",
        help="image files, clips (.mp4 .mov .avi .mkv .webm), folders of them, quoted patterns, "
        "addresses such as s3://bucket/parts, or - for a list on standard input",
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
        choices=("csv", "jsonl", "parquet"),
        help="of the scores in that folder: csv (default) or jsonl; with --engine ray, in shards: "
        "jsonl (default) or parquet",
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
        help="go on where an earlier call with the same --out ended; what could not be read is "
        "tried again (not with --engine ray)",
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
    add_engine_flags(command)


def run(options: argparse.Namespace) -> int:
    from igd.deploy.loading import load_predictor
    from igd.files import locked, make_folder

    if options.resume and not options.out:
        raise UserError("--resume goes on with the scores of a folder; add --out FOLDER")
    if options.overwrite and options.resume:
        raise UserError("--overwrite starts anew and --resume goes on; give one of them")
    if options.maps and not options.out:
        raise UserError(f"--maps {options.maps} needs a folder to write to; add --out FOLDER")
    if options.overwrite and not options.out:
        raise UserError("--overwrite replaces the scores of a folder; add --out FOLDER")
    if options.every < 1:
        raise UserError(f"--every {options.every}: give a number of frames, 1 or more")
    check_engine(options)
    _check_format(options)
    images = image_paths(options.images)
    check_order(options.model, images, "predict")
    if options.out:
        check_out(options.out, images)
    named = named_images(images, options.out, options.every)
    with warnings_as_lines():
        predictor = load_predictor(options.model, threads() if len(named) >= MANY else 1)
    use_rate(options, predictor)
    if not options.out:
        return _predict(options, predictor, named)
    with locked(make_folder(options.out) / "scores", "writing to"):
        if options.engine == RAY:
            from igd.cli.predict_shards import predict_shards

            return predict_shards(options, predictor, [str(path) for path in named])
        return _predict(options, predictor, named)


def _check_format(options: argparse.Namespace) -> None:
    """Which tables and maps an engine writes."""
    if options.engine != RAY:
        if options.format == "parquet":
            raise UserError("--format parquet is written in shards; add --engine ray")
        if options.format and not options.out:
            raise UserError(
                f"--format {options.format} needs a folder to write to; add --out FOLDER"
            )
        options.format = options.format or "csv"
        return
    options.format = options.format or "jsonl"
    if not options.out:
        raise UserError("--engine ray writes scores in shards; add --out FOLDER")
    if options.maps:
        raise UserError(
            f"--maps {options.maps} is not for --engine ray, which writes scores alone; predict "
            f"the images whose maps matter without it"
        )
    if options.format == "csv":
        raise UserError("--engine ray writes shards of jsonl or parquet, not csv")


def _predict(options: argparse.Namespace, predictor: Predictor, named: dict[Place, str]) -> int:
    from igd.evaluation.results import Results
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
        done = {n for n, path in enumerate(paths) if results.has(path)}
    left = [path for n, path in enumerate(paths) if n not in done]
    if results:
        results.score_again(left)
    verdicts = Verdicts(
        predictor, results, as_json=options.json, shown=not results, strict=options.strict
    )
    timing, started = Timing(), time.perf_counter()
    predictions = predictor.predictions(
        paths, progress=progress_of(options), timing=timing, keep_images=bool(results), skip=done
    )
    for path, prediction in zip(left, predictions, strict=True):
        verdicts.add(str(path), named[path], prediction)
    verdicts.say_drift()
    if options.verbose:
        print(
            f"igd: {len(left)} images in {time.perf_counter() - started:.2f} s: "
            f"{timing.model:.2f} s in the model; "
            f"decoding took {timing.decoding:.2f} s; both summed over threads",
            file=sys.stderr,
        )
    written = f"scores.{options.format} and anomaly maps" if results else None
    return conclude(options, verdicts.tally, verdicts.close, written)


def conclude(
    options: argparse.Namespace, tally: Tally, close: Callable[[], None], written: str | None
) -> int:
    """Say what became of the images, and what was written; the exit code."""
    if tally.unreadable == tally.images:
        raise UserError(f"none of the {tally.images} images could be read")
    if written and not options.json:
        print(f"{visible(options.out)}: {written}")
    close()
    return FAILED if tally.unreadable and not options.skip_unreadable else DONE
