"""`igd completion`: a script that makes a shell complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

from igd.cli.common import DONE

SHELLS = ("bash", "zsh", "fish")
EXAMPLE = """example:
  source <(igd completion bash)                              in ~/.bashrc; zsh: in ~/.zshrc
  igd completion fish > ~/.config/fish/completions/igd.fish
"""


def add(commands: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script that makes a shell complete igd's commands",
        description="Print a script that makes a shell complete igd's commands, options and files.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=lambda options: run(options, parser()), verbose=False)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    import shtab

    _complete_files(parser, shtab.FILE)
    script = shtab.complete(parser, shell=options.shell)
    # What shtab writes for zsh registers itself where it is evaluated, not where it is sourced.
    print(f"eval {quote(script)}" if options.shell == "zsh" else script)
    return DONE


def _complete_files(parser: argparse.ArgumentParser, how: Any) -> None:
    """Offer files where a path is asked for, in this command and in those below it."""
    for action in parser._actions:  # argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _complete_files(below, how)
        elif action.type is Path:
            action.complete = how  # type: ignore[attr-defined]  # where shtab looks for it
