"""What every command shares: its flags, its progress, how results are printed and signals heard."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from igd.errors import DataWarning, ModelWarning, TrainingWarning, UserError
from igd.files import EXPORTED
from igd.progress import LineProgress, LogProgress, Progress, TerminalProgress
from igd.text import visible

if TYPE_CHECKING:
    from igd.inference.predictor import Predictor

NEAR = 0.75  # likeness of two flags from which one may have been meant for the other
SUMMARY = ("summary", "at_promised_rates", "misses", "false_alarms")  # told in words
DONE, FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """argparse, with an error in one line like all others, and the nearest word for one that it
    does not know.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what a command does not know there, not in the parser above: its own help has the
        answer.
        """
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return known, unknown

    def _meant(self, unknown: list[str]) -> str:
        """The flag that is nearest to one that there is not."""
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        for word in unknown:
            if word.startswith("-"):
                for near in get_close_matches(word.partition("=")[0], flags, 1, NEAR):
                    return f"; did you mean {near}?"
        return ""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        near = unknown and get_close_matches(unknown[1], re.findall(r"[\w+-]+", unknown[2]), 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        self.exit(
            USER_ERROR, f"igd: error: {visible(message)}{meant} ({self.prog} --help says more)\n"
        )


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], purpose: str, example: str
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="machine-readable lines on standard output, nothing else there",
    )
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.add_argument(
        "--verbose",
        action="store_true",
        help="say where a failure happened and where the time went",
    )
    command.set_defaults(run=run)
    return command


def add_rate_flag(command: argparse.ArgumentParser) -> None:
    """The same model, another threshold."""
    command.add_argument(
        "--max-false-alarms",
        type=float,
        metavar="RATE",
        help="accepted share of false alarms (default: the model's)",
    )


def use_rate(options: argparse.Namespace, predictor: Predictor) -> None:
    """Let a model accept the rate that `add_rate_flag` asks for, or refuse it with the lowest."""
    if options.max_false_alarms is not None:
        predictor.max_false_alarms = options.max_false_alarms


def refuse_export(model: Path, doing: str) -> None:
    """What was exported stays as it is."""
    if model.suffix.lower() == EXPORTED:
        raise UserError(
            f"{model}: an exported model stays as it is; {doing} the .igd file that it was made "
            f"from, and export that"
        )


def progress_of(options: argparse.Namespace) -> Progress:
    """Bars on a terminal, lines now and then in a log, nothing but messages with --quiet."""
    if options.quiet:
        return LineProgress()
    return TerminalProgress() if sys.stderr.isatty() else LogProgress()


def print_metrics(options: argparse.Namespace, metrics: dict[str, Any]) -> None:
    if options.json:
        print(json.dumps(metrics))
        return
    print_summary(metrics)
    intervals = metrics.get("intervals_95", {})
    for name, value in metrics.items():
        if value is None or name in ("intervals_95", *SUMMARY):
            continue
        shown = (
            f"{value:.4f}"
            if isinstance(value, float)
            else ", ".join(value)
            if isinstance(value, list)
            else str(value)
        )
        if name in intervals:
            shown += "  (95 %: {:.4f} to {:.4f})".format(*intervals[name])
        print(f"{name:<28}{visible(shown)}")
    missing = [name for name, value in metrics.items() if value is None]
    if missing:
        print(f"{'needs masks, or both kinds':<28}{', '.join(missing)}")


def print_summary(metrics: dict[str, Any]) -> None:
    """What matters first: misses and false alarms, what is wrong, and rates to choose from."""
    from igd.evaluation.summary import as_table

    for sentence in metrics["summary"]:
        print(visible(sentence))
    heading = ["promised", "threshold", "missed", "false alarms"]
    table = as_table(metrics["at_promised_rates"], metrics["n_normal"], metrics["n_anomalous"])
    print()
    for row in (heading, *table):
        print("".join(f"{cell:<14}" for cell in row).rstrip())
    print()


def checkpoint_beside(options: argparse.Namespace) -> Path:
    """The checkpoint beside the output; refuses one that is there without --resume, and an output
    that can't be written.
    """
    from igd.files import check_writable

    check_writable(options.output)
    checkpoint = Path(f"{options.output}.checkpoint")
    if checkpoint.exists() and not options.resume:
        raise UserError(
            f"{checkpoint}: an unfinished training is there; go on with --resume, or delete it to "
            f"start anew"
        )
    return checkpoint


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
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
def warnings_as_lines(shown: bool = True) -> Iterator[None]:
    """Our own warnings as one line each; those of libraries are not the user's business."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught if shown else ():
                if issubclass(warning.category, TrainingWarning | ModelWarning | DataWarning):
                    print(f"igd: warning: {visible(warning.message)}", file=sys.stderr)
