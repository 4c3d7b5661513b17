"""SIGKILL at any moment of the five commands that write.

After it, an older file is as it was or the new one is whole; the same command, with --resume where
there is one, ends with what an undisturbed run ends with, and leaves nothing else behind.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torture.commands_on_files import Writer, writers
from torture.materials import Materials
from torture.mutations import chance
from torture.tally import Tally
from torture.worker import Worker

LONGEST = 240.0  # seconds of a command that nobody disturbs
OLDER = b"an older file, which is somebody's"
EXPORTS_AGAIN = 5  # an export starts anew: every fifth is run to its end


def torture(materials: Materials, count: int, seed: int) -> Iterator[Tally]:
    """`count` kills of each command."""
    with Worker() as worker:
        for place, writer in enumerate(writers(materials)):
            row = Tally(f"kills: {writer.name}")
            with tempfile.TemporaryDirectory() as folder:
                undisturbed, seconds = run_whole(worker, writer, Path(folder))
            for number in range(count):
                with tempfile.TemporaryDirectory() as folder:
                    moment = chance(seed, 1000 * place + number).uniform(0, seconds)
                    to_end = writer.name != "export" or number % EXPORTS_AGAIN == 0
                    old = writer.old and number % 2 == 0
                    kill(worker, writer, Path(folder), moment, old, to_end, undisturbed, row)
            yield row


def run_whole(worker: Worker, writer: Writer, folder: Path) -> tuple[Any, float]:
    """What an undisturbed run leaves, and how long a warm one takes."""
    job = {"do": "command", "kill_after": LONGEST, "command": writer.command}
    (folder / "warm").mkdir()
    worker.ask({**job, "cwd": str(folder / "warm"), "warm": True}, LONGEST + 60)
    ended = worker.ask({**job, "cwd": str(folder)}, LONGEST + 60)
    assert ended.get("code") == 0, f"{writer.name} fails undisturbed: {ended}"
    return writer.left(folder), ended["seconds"]


def kill(
    worker: Worker,
    writer: Writer,
    folder: Path,
    moment: float,
    old: bool,
    to_end: bool,
    undisturbed: Any,
    row: Tally,
) -> None:
    target, case = folder / writer.target, f"{writer.name} killed after {moment:.3f} s"
    if old:
        target.write_bytes(OLDER)
    job = {"do": "command", "cwd": str(folder)}
    ended = worker.ask({**job, "command": writer.command, "kill_after": moment}, LONGEST + 60)
    if "code" not in ended:
        return row.add(next(iter(ended)), f"{case}: {ended}")
    row.remember(ended["peak_mb"])
    if not ended["killed"] and ended["code"] != 0:
        return row.add("crashed", f"{case}: {ended['err'][-200:]}")
    is_older = old and target.read_bytes() == OLDER
    if target.is_file() and not is_older and (problem := broken(writer, folder)):
        return row.add("wrong", f"{case}: left {problem}")
    if not to_end:
        return row.add("survived")
    again = writer.again if ended["killed"] else writer.command
    if not ended["killed"] and writer.name == "predict":
        shutil.rmtree(target)
    ended = worker.ask({**job, "command": again, "kill_after": LONGEST}, LONGEST + 60)
    if ended.get("code") != 0:
        return row.add("crashed", f"{case}, then: {ended.get('err', ended)}")
    row.remember(ended["peak_mb"])
    if problem := broken(writer, folder):
        return row.add("wrong", f"{case}, then: {problem}")
    if not writer.same(writer.left(folder), undisturbed):
        return row.add("wrong", f"{case}, then: not what an undisturbed run leaves")
    if litter := leftovers(folder):
        return row.add("wrong", f"{case}, then left behind: {litter}")
    return row.add("survived")


def broken(writer: Writer, folder: Path) -> str | None:
    """Why what a command left can't be read; None where it can."""
    try:
        writer.left(folder)
    except Exception as error:  # whatever is wrong with it is what we look for
        return f"{type(error).__name__}: {error}"
    return None


def leftovers(folder: Path) -> list[str]:
    """Half-written files, locks and checkpoints."""
    found = (path.name for path in folder.rglob("*"))
    return sorted(name for name in found if name.endswith((".part", ".lock", ".checkpoint")))
