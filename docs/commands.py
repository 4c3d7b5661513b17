"""The page of commands and flags, from the parsers themselves.

python docs/commands.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from igd.cli import _parser

PAGE = Path(__file__).with_suffix(".md")
EVERYWHERE = ("help", "json", "quiet", "verbose")  # said once, above
OPENING = """# Commands

Made from the parsers by `python docs/commands.py`; `igd COMMAND --help` says the same.

Every command takes `--json` (machine-readable lines on standard output, nothing else there),
`--quiet` (no progress) and `--verbose` (say where a failure happened and where the time went).

Exit codes: 0 done, 1 failed, 2 the input is at fault, 130 stopped.
"""


def page() -> str:
    """All commands, in the order a newcomer meets them."""
    return "\n".join([OPENING, *(_section(command) for command in _commands(_parser()))])


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers that do something: the leaves of the tree."""
    branches = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    if not branches:
        yield parser
    for branch in branches:
        for child in branch.choices.values():
            yield from _commands(child)


def _section(command: argparse.ArgumentParser) -> str:
    actions = [action for action in command._actions if action.dest not in EVERYWHERE]
    rows = [f"| {_name(action)} | {_meaning(action)} |" for action in actions]
    table = ["| argument | |", "|---|---|", *rows, ""] if rows else []
    example = dedent((command.epilog or "").removeprefix("example:\n")).strip()
    return "\n".join(
        [
            f"## {command.prog}",
            "",
            command.description or "",
            "",
            "```console",
            example,
            "```",
            "",
            *table,
        ]
    )


def _name(action: argparse.Action) -> str:
    """How an argument is written, with what it takes."""
    takes = (
        "" if action.nargs == 0 else f"{action.metavar or action.dest.upper().replace('_', '-')}"
    )
    if action.choices is not None:
        takes = "{" + ",".join(map(str, action.choices)) + "}"
    takes = {"+": f"{takes} ...", "?": f"[{takes}]"}.get(str(action.nargs), takes)
    words = [f"{option} {takes}".strip() for option in action.option_strings] or [takes]
    return ", ".join(f"`{word}`" for word in words)


def _meaning(action: argparse.Action) -> str:
    said = (action.help or "") % {"default": action.default}
    if (
        action.option_strings
        and action.default is not None
        and action.nargs != 0
        and "default" not in said
    ):
        said = f"{said} (default: {action.default})".strip()
    required = "required: " if action.option_strings and action.required else ""
    return f"{required}{said}".replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
