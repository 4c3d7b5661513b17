"""The command line: one module a command, each parses, calls and prints. PyTorch is imported by the command that needs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from igd.cli import (
    audit,
    benchmark,
    completion,
    demo,
    doctor,
    evaluate,
    export,
    predict,
    pretrain,
    serve,
    train,
    weights,
)
from igd.cli.common import DONE, FAILED, INTERRUPTED, USER_ERROR, Parser
from igd.errors import Interrupted, UserError
from igd.version import __version__

# In the order a newcomer meets them.
COMMANDS = (demo, train, predict, evaluate, audit, export, serve, pretrain, weights, benchmark, doctor)

EXAMPLES = """examples:
  igd demo                                        train, evaluate and report on images that come with igd
  igd train parts/good -o parts.igd               learn from a folder of normal images
  igd predict parts.igd parts/new --out results/  score images, write heat maps
  igd evaluate parts.igd bottle/ --report report.html
  igd audit parts/good                            which 'normal' images look least normal
  igd export parts.igd parts.onnx                 a model that runs without PyTorch
  igd serve parts.igd                             HTTP API and page, on this machine
  igd pretrain distill parts/good -o encoder.igd  make an encoder of one's own
  igd weights list                                where ImageNet weights are
  igd benchmark paper                             the paper's tables; `igd benchmark run` measures them
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


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="igd",
        description="Learns what normal images look like, scores new ones and shows where they deviate.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"igd {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    completion.add(commands, _parser)
    return parser
