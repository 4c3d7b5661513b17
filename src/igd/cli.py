"""The command line: parse, call, print. PyTorch is imported by the command that needs it, not by `--help`."""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.errors import Interrupted, TrainingWarning, UserError
from igd.progress import LineProgress, Progress, TerminalProgress
from igd.version import __version__

if TYPE_CHECKING:
    from igd.detector import IGD

DONE, FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130

EXAMPLES = """examples:
  igd demo                                        train, evaluate and report on images that come with igd
  igd train parts/good -o parts.igd               learn from a folder of normal images
  igd predict parts.igd parts/new --out results/  score images, write heat maps
  igd evaluate parts.igd bottle/ --report report.html
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        result: int = options.run(options)
        return result
    except UserError as error:
        print(f"igd: error: {error}", file=sys.stderr)
        return USER_ERROR
    except Interrupted as error:
        print(f"igd: {error}", file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("igd: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if options.verbose:
            raise
        print(f"igd: failed: {error or type(error).__name__} (--verbose shows where)", file=sys.stderr)
        return FAILED


def _train(options: argparse.Namespace) -> int:
    from igd.data.sources import training_folder
    from igd.detector import IGD
    from igd.files import check_writable

    target = options.output
    check_writable(target)
    checkpoint = target.with_name(target.name + ".checkpoint")
    if checkpoint.exists() and not options.resume:
        raise UserError(f"{checkpoint}: an unfinished training is there; go on with --resume, or delete it to start anew")
    detector = IGD(**{name: getattr(options, name) for name in _TRAINING_FLAGS})
    with _interruptible() as stop, _warnings_as_lines():
        detector.fit(
            training_folder(options.images),
            checkpoint=checkpoint,
            resume=options.resume,
            progress=_progress(options),
            stop=stop,
        )
    detector.save(target)  # until here the checkpoint stays: a full disk costs nothing that was learnt
    checkpoint.unlink(missing_ok=True)
    if options.json:
        print(
            json.dumps({"model": str(target), "threshold": detector.threshold_, **_identity(detector), **detector.provenance_})
        )
    else:
        made = detector.provenance_
        print(
            f"{target}: learnt from {made['images']} images in {made['seconds']:.0f} s "
            f"(recipe {options.recipe}, seed {options.seed}); scores above {detector.threshold_:.4f} are alarms, at most "
            f"{detector.false_alarm_rate_:.1%} of normal images by the {made['calibration_images']} held out"
        )
    return DONE


def _predict(options: argparse.Namespace) -> int:
    from igd.detector import IGD, Prediction
    from igd.files import make_folder

    detector = IGD.load(options.model)
    named = dict(item for given in options.images for item in _images(given, options.out))
    paths = list(named)
    out = make_folder(options.out) if options.out else None
    table = _Table(out / "scores.csv") if out else None
    failures = 0
    for path, prediction in zip(paths, detector.predictions(paths, progress=_progress(options)), strict=True):
        if not isinstance(prediction, Prediction):
            if options.strict:
                raise prediction
            failures += 1
            print(f"igd: left out: {prediction}", file=sys.stderr)
            continue
        row = {name: getattr(prediction, name) for name in ("score", "p_value", "is_anomalous")}
        row = {"path": str(path), **row}
        if table and out:
            table.write(row)
            _write_overlay(out / named[path], path, prediction.map, detector)
        if options.json:
            print(json.dumps(row), flush=True)
        elif not table:
            verdict = "ANOMALOUS" if prediction.is_anomalous else "normal"
            print(f"{verdict:<9}  score {prediction.score:.4f}  p {prediction.p_value:.4f}  {path}", flush=True)
    if failures == len(paths):
        raise UserError(f"none of the {len(paths)} images could be read")
    if table and not options.json:
        print(f"{options.out}: scores.csv and heat maps of {len(paths) - failures} images")
    return DONE


def _evaluate(options: argparse.Namespace) -> int:
    from igd.data.sources import labelled_samples
    from igd.detector import IGD
    from igd.evaluation.evaluate import evaluate
    from igd.evaluation.report import write_report
    from igd.files import check_writable

    if options.report:
        check_writable(options.report)
    detector = IGD.load(options.model)
    evaluation = evaluate(detector, labelled_samples(options.images), _progress(options))
    if options.report:
        write_report(options.report, detector, evaluation, f"{options.images.resolve().name}: {options.model.name}")
    _print_metrics(options, {**evaluation.metrics, **_identity(detector)})
    if options.report and not options.json:
        print(f"report: {options.report}")
    return DONE


def _demo(options: argparse.Namespace) -> int:
    from igd.data.demo import make_demo
    from igd.data.sources import labelled_samples, training_folder
    from igd.detector import IGD
    from igd.evaluation.evaluate import evaluate
    from igd.evaluation.report import write_report
    from igd.files import make_folder
    from igd.preparation import check_seed

    check_seed(options.seed)
    out = make_folder(options.out)
    data = make_demo(out / "bricks", seed=options.seed)
    progress = _progress(options)
    with _warnings_as_lines():
        detector = IGD(image_size=192, scales=("local",), steps=options.steps, seed=options.seed).fit(
            training_folder(data), progress=progress
        )
    detector.save(out / "bricks.igd")
    evaluation = evaluate(detector, labelled_samples(data), progress)
    write_report(out / "report.html", detector, evaluation, "igd demo: a brick wall")
    _print_metrics(options, {**evaluation.metrics, **_identity(detector)})
    if not options.json:
        print(f"model:  {out / 'bricks.igd'}\nreport: {(out / 'report.html').resolve()}")
    return DONE


def _images(given: Path, out: Path | None) -> list[tuple[Path, str]]:
    """The images of a file or folder, without earlier results in it, each with the name of its heat map."""
    from igd.data.images import find_images

    inside = given if given.is_dir() else given.parent
    found = [path for path in find_images(given) if out is None or out.resolve() not in path.resolve().parents]
    names = ("_".join(path.relative_to(inside).parts) for path in found)
    return [(path, name.replace(".", "_") + ".png") for path, name in zip(found, names, strict=True)]


def _write_overlay(target: Path, path: Path, heat: Any, detector: IGD) -> None:
    from igd.data.images import read_image
    from igd.evaluation.overlay import overlay
    from igd.files import atomic

    with atomic(target) as part:
        overlay(read_image(path), heat, detector.usual_heat_, detector.pixel_threshold_).save(part, format="PNG")


class _Table:
    """A CSV file that is complete up to the last row written, whatever happens next."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", newline="", encoding="utf-8")
        self.writer: csv.DictWriter[str] | None = None

    def write(self, row: dict[str, Any]) -> None:
        if self.writer is None:
            self.writer = csv.DictWriter(self.file, list(row))
            self.writer.writeheader()
        self.writer.writerow(row)
        self.file.flush()


def _identity(detector: IGD) -> dict[str, Any]:
    """What made a result: recipe, objective, seed, version."""
    return {
        "recipe": detector.recipe,
        "objective": detector.objective,
        "scales": [scale.settings.name for scale in detector.scales_],
        "seed": detector.seed,
        "made_by": detector.provenance_["made_by"],
    }


def _print_metrics(options: argparse.Namespace, metrics: dict[str, Any]) -> None:
    if options.json:
        print(json.dumps(metrics))
        return
    for name, value in metrics.items():
        shown = "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
        print(f"{name:<28}{shown}")


def _progress(options: argparse.Namespace) -> Progress:
    return LineProgress() if options.quiet else TerminalProgress()


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks training to stop at the end of its step; a second one stops at once."""
    asked = False

    def ask(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Our own warnings as one line each; those of libraries are not the user's business."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                if issubclass(warning.category, TrainingWarning):
                    print(f"igd: warning: {warning.message}", file=sys.stderr)


_TRAINING_FLAGS = [
    "recipe",
    "objective",
    "scales",
    "image_size",
    "fit_to",
    "epochs",
    "steps",
    "batch_size",
    "learning_rate",
    "width",
    "calibration",
    "max_false_alarms",
    "seed",
    "device",
    "precision",
    "strict",
]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="igd",
        description="Learns what normal images look like, scores new ones and shows where they deviate.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"igd {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    train = _command(commands, "train", _train, "learn from normal images", "igd train parts/good -o parts.igd")
    train.add_argument("images", type=Path, help="folder of normal images, or a category in MVTec's layout")
    train.add_argument("-o", "--output", type=Path, required=True, help="the model file to write, such as parts.igd")
    train.add_argument("--resume", action="store_true", help="go on where an interrupted training stopped")
    _add_training_flags(train)

    predict = _command(commands, "predict", _predict, "score images", "igd predict parts.igd parts/new --out results/")
    predict.add_argument("model", type=Path, help="a model file")
    predict.add_argument("images", type=Path, nargs="+", help="image files or folders of them")
    predict.add_argument("--out", type=Path, help="folder for scores.csv and heat maps")
    predict.add_argument("--strict", action="store_true", help="refuse unreadable images instead of leaving them out")

    evaluate = _command(
        commands, "evaluate", _evaluate, "measure on labelled images", "igd evaluate parts.igd bottle/ --report report.html"
    )
    evaluate.add_argument("model", type=Path, help="a model file")
    evaluate.add_argument("images", type=Path, help="folder with test/good, test/<defect> and ground_truth/<defect>")
    evaluate.add_argument("--report", type=Path, help="HTML page to write")

    demo = _command(commands, "demo", _demo, "train, evaluate and report on images that come with igd", "igd demo")
    demo.add_argument("--out", type=Path, default=Path("igd-demo"), help="folder to write to (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("--steps", type=int, default=260, help="batches to train on (default: %(default)s)")
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], purpose: str, example: str
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--json", action="store_true", help="machine-readable lines on standard output, nothing else there")
    command.add_argument("--quiet", action="store_true", help="no progress bars")
    command.add_argument("--verbose", action="store_true", help="show where a failure happened")
    command.set_defaults(run=run)
    return command


def _add_training_flags(command: argparse.ArgumentParser) -> None:
    """The constructor's parameters, under their own names."""
    add = command.add_argument
    add("--recipe", default="fast", help="fast (default), paper, authors")
    add("--objective", default="igd", help="igd (default), mse, rec, rec+gac, dsvdd, dsvdd-soft, dsvdd+rec, authors")
    add("--scales", type=lambda text: tuple(text.split(",")), help="global, local, or global,local (default: the recipe's)")
    add("--image-size", type=int, help="side of the square the model sees (default: 32 for small images, else 256)")
    add(
        "--fit", dest="fit_to", choices=("resize", "crop", "letterbox"), help="how images become that square (default: resize)"
    )
    add("--epochs", type=int, help="passes over the images (default: the recipe's)")
    add("--steps", type=int, help="batches to train on, instead of epochs (default: the recipe's)")
    add("--batch-size", type=int, help="default: the recipe's")
    add("--learning-rate", type=float, help="default: the recipe's")
    add("--width", type=int, help="channels of the networks' first stage (default: the recipe's)")
    add("--calibration", type=float, default=0.2, help="share of the images held out for the threshold (default: 0.2)")
    add("--max-false-alarms", type=float, help="accepted share of false alarms (default: 0.05, or what is possible)")
    add("--seed", type=int, default=0)
    add("--device", default="cpu", help="cpu (default) or cuda")
    add("--precision", default="32-true", choices=("32-true", "bf16-mixed"))
    add("--strict", action="store_true", help="refuse unreadable images instead of leaving them out")


if __name__ == "__main__":
    sys.exit(main())
