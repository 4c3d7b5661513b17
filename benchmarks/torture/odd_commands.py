"""Command lines that hypothesis makes of the parsers' own commands and flags, with values that fit
and values that don't.

Exit code 2 and a sentence, or a command that does its work. A command that takes long is asked to
stop, as Ctrl-C does, and must. What is not tried: serving (see hostile_http), the demo, downloads.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from torture.materials import Materials
from torture.tally import Tally
from torture.worker import Worker

NOT_TRIED = ("serve", "demo", "weights")
STOP = 3.0  # seconds after which a command is asked to stop
HUNG = 60.0  # and after which one has not listened
SHORT = ("--quiet",)


def torture(materials: Materials, count: int, seed: int) -> list[Tally]:
    with Worker() as worker:
        return [attempts(worker, materials, count, seed)]


def attempts(worker: Worker, materials: Materials, count: int, seed: int) -> Tally:
    """So many command lines, each in a folder of its own."""
    row = Tally("command lines")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "place"

        @seeded(seed)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(command_lines())
        def attempt(line: list[str]) -> None:
            if row.tried < count:
                fresh(place, materials)
                _attempt(worker, place, line, row)

        attempt()
    return row


def fresh(place: Path, materials: Materials) -> None:
    """A folder with a model, its export, images, a file that is none of them, and nothing else."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copy(materials.igd, place / "model.igd")
    shutil.copy(materials.onnx, place / "model.onnx")
    (place / "images").symlink_to(materials.images)
    (place / "empty").mkdir()
    (place / "text.txt").write_text("nothing\n")
    (place / "text.png").write_bytes(b"\x89PNG")


def _attempt(worker: Worker, place: Path, line: list[str], row: Tally) -> None:
    job = {"do": "command", "cwd": str(place), "command": line, "stop_after": STOP}
    ended = worker.ask({**job, "kill_after": HUNG}, HUNG + 60)
    case = " ".join(repr(each)[:60] for each in line)
    if "code" not in ended or ended["killed"]:
        return row.add("crashed" if "crashed" in ended else "hung", f"{case}: {str(ended)[-150:]}")
    row.remember(ended["peak_mb"])
    said = ended["err"].strip()
    if ended["code"] == 2:
        return row.add("refused" if said else "crashed", f"{case}: exit code 2 without a word")
    failed = "igd: failed" in said or "Traceback" in said
    if ended["code"] not in (0, 1, 130) or failed:
        return row.add("crashed", f"{case}: {ended['code']} {said[-150:]}")
    return row.add("survived")


def command_lines() -> st.SearchStrategy[list[str]]:
    from igd.cli import _parser

    return st.one_of([_line(words, parser) for words, parser in _leaves(_parser(), [])])


def _leaves(
    parser: argparse.ArgumentParser, words: list[str]
) -> Iterator[tuple[list[str], argparse.ArgumentParser]]:
    inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not inner:
        yield words, parser
    for each in inner:
        for name, below in each.choices.items():
            if name not in NOT_TRIED:
                yield from _leaves(below, [*words, name])


@st.composite
def _line(draw: Any, words: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """A command with most of its positions filled and a few of its flags."""
    line = list(words)
    flags = [each for each in parser._actions if each.option_strings and each.dest != "help"]
    for action in parser._actions:
        if not action.option_strings and draw(st.integers(0, 19)):
            line += draw(_values(action))
    needed = [each for each in flags if each.required and draw(st.integers(0, 19))]
    chosen = draw(st.lists(st.sampled_from(flags), max_size=4)) if flags else []
    for action in [*needed, *chosen]:
        line.append(draw(st.sampled_from(action.option_strings)))
        line += draw(_values(action))
    if words[0] in ("train", "audit", "pretrain") and draw(st.integers(0, 3)):
        line += ["--steps", "1"]
    return [*line, *SHORT]


def _values(action: argparse.Action) -> st.SearchStrategy[list[str]]:
    if action.nargs == 0:
        return st.just([])
    several = action.nargs in ("+", "*") or isinstance(action.nargs, int)
    return st.lists(_value(action), min_size=1, max_size=3 if several else 1)


def _value(action: argparse.Action) -> st.SearchStrategy[str]:
    """Mostly of the kind the flag asks for, else of any."""
    kinds = {
        int: st.one_of(st.integers(-2, 300), st.sampled_from([2**31, -(2**63), 10**30])).map(str),
        float: st.one_of(
            st.floats(width=32).map(str), st.sampled_from(["0.5", "0.05", "1", "0", "nan", "-inf"])
        ),
        Path: PATHS,
    }
    own = kinds.get(action.type, WORDS)  # type: ignore[call-overload]
    if action.choices:
        own = st.sampled_from([str(each) for each in action.choices])
    return st.one_of(own, own, own, PATHS, WORDS)


# Within the folder of the attempt, or nowhere: a campaign writes nothing elsewhere.
PATHS = st.sampled_from(
    [
        *("model.igd", "model.onnx", "images", "images/000.png", "empty", "text.txt", "text.png"),
        *("new.igd", "new.onnx", "new", "no/such/file", "", ".", "a\nb", "\udce9.png", "x" * 300),
    ]
)
WORDS = st.one_of(
    st.sampled_from(
        ["fast", "paper", "global", "global,local", "imagenet", "scratch", "mnist", "0"]
    ),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=12),
)
