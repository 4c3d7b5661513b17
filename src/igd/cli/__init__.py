"""The command line: one module a command, each parses, calls and prints. PyTorch is imported by the
command that needs it.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import warnings
from collections.abc import Sequence

from igd.cli import (
    audit_command,
    benchmark_command,
    calibrate_command,
    compare_command,
    completion_command,
    demo_command,
    doctor_command,
    evaluate_command,
    export_command,
    info_command,
    predict_command,
    pretrain_command,
    serve_command,
    studio_command,
    train_command,
    update_command,
    verify_command,
    watch_command,
    weights_command,
)
from igd.cli.common import DONE, FAILED, INTERRUPTED, USER_ERROR, Parser
from igd.cpu import let_threads_take_turns, let_waiting_threads_sleep
from igd.errors import Interrupted, UserError
from igd.text import visible
from igd.version import __version__

# In the order a newcomer meets them.
SHOWN = 40  # characters of a name that is too long
COMMANDS = (
    demo_command,
    train_command,
    predict_command,
    watch_command,
    evaluate_command,
    compare_command,
    audit_command,
    calibrate_command,
    update_command,
    info_command,
    export_command,
    verify_command,
    serve_command,
    studio_command,
    pretrain_command,
    weights_command,
    benchmark_command,
    doctor_command,
)

EXAMPLES = """examples:
  igd demo                                        train, evaluate and report, on images of its own
  igd train parts/good -o parts.igd               learn from a folder of normal images
  igd predict parts.igd parts/new --out results/  score images, write anomaly maps
  igd watch parts.igd incoming/ --out results/    score what arrives in a folder
  igd evaluate parts.igd labelled/ --report report.html
  igd compare parts.igd parts-new.igd labelled/   two models on the same labelled images
  igd audit parts/good                            which 'normal' images look least normal
  igd calibrate parts.igd parts/relit             another threshold, without training
  igd update parts.igd parts/relit                learn from more good images, without those before
  igd info parts.igd                              what it learnt from, promises, and was before
  igd export parts.igd parts.onnx                 a model that runs without PyTorch
  igd verify parts.igd parts.onnx                 are these files what they were when they were made
  igd serve parts.igd                             HTTP API and page, on this machine
  igd studio line-3/                              all of this in the browser
  igd pretrain distill parts/good -o encoder.igd  make an encoder of one's own
  igd weights list                                where ImageNet weights are
  igd benchmark paper                             the paper's tables; `benchmark run` measures them
  igd doctor                                      what is installed, and what is missing
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    parser = _parser()
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        parser.print_help()
        return USER_ERROR
    options = parser.parse_args(given)
    options.given = list(given)  # for a command that starts itself in further processes
    let_waiting_threads_sleep()
    let_threads_take_turns()
    # What Pillow can't read is said by us, by name.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    warnings.filterwarnings("ignore", message=r"Image size \(\d+ pixels\) exceeds limit")
    try:
        result: int = options.run(options)
        return result
    except UserError as error:
        print(f"igd: error: {error}", file=sys.stderr)
        return USER_ERROR
    except Interrupted as error:
        print(f"igd: {visible(error)}", file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("igd: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except ModuleNotFoundError as error:
        if options.verbose or (error.name or "igd").partition(".")[0] == "igd":
            raise
        print(
            f"igd: error: this command needs the package {error.name}, which is not installed; "
            f"pip install igd-anomaly brings it (igd-anomaly-runtime only predicts and serves "
            f"exported models, and igd-anomaly-runtime[evaluate] evaluates them)",
            file=sys.stderr,
        )
        return USER_ERROR
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG and error.filename:
            name = str(error.filename)
            print(
                f"igd: error: {visible(name[:SHOWN])}...: a name of {len(name):,} characters is "
                f"too long for this file system",
                file=sys.stderr,
            )
            return USER_ERROR
        if options.verbose:
            raise
        print(
            f"igd: failed: {visible(error) or type(error).__name__} (--verbose shows where)",
            file=sys.stderr,
        )
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="igd",
        description=(
            "Learns what normal images look like, scores new ones and shows where they deviate."
        ),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"igd {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    completion_command.add(commands, _parser)
    return parser
