"""Writes that fail at the n-th byte of a file, for the five commands that write.

Each must end with exit code 1 or 2 and a sentence, leave an older file as it was and nothing half
written, and do its work when there is room again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torture.commands_on_files import Writer, writers
from torture.kills import LONGEST, OLDER, broken, leftovers, run_whole
from torture.materials import Materials
from torture.mutations import chance
from torture.tally import Tally
from torture.worker import Worker

EXPORTS = 5  # an export takes as long as fifty of the others: one in five as many


def torture(materials: Materials, count: int, seed: int) -> Iterator[Tally]:
    """`count` limits for each command."""
    with Worker() as worker:
        for place, writer in enumerate(writers(materials)):
            row = Tally(f"disk: {writer.name}")
            with tempfile.TemporaryDirectory() as folder:
                undisturbed, _ = run_whole(worker, writer, Path(folder))
                target = Path(folder) / writer.target
                files = [target] if target.is_file() else target.rglob("*")
                largest = max(path.stat().st_size for path in files)
            for number in range(count if writer.name != "export" else -(-count // EXPORTS)):
                rng = chance(seed, 1000 * place + number)
                limit = int(rng.integers(1, 600) if number % 3 == 0 else rng.integers(1, largest))
                with tempfile.TemporaryDirectory() as folder:
                    fill(worker, writer, Path(folder), limit, undisturbed, row)
            yield row


def fill(
    worker: Worker, writer: Writer, folder: Path, limit: int, undisturbed: Any, row: Tally
) -> None:
    target, case = folder / writer.target, f"{writer.name} with files of {limit} bytes"
    if writer.old:
        target.write_bytes(OLDER)
    job = {"do": "command", "cwd": str(folder), "kill_after": LONGEST}
    ended = worker.ask({**job, "command": writer.command, "file_bytes": limit}, LONGEST + 60)
    if "code" not in ended or ended["killed"]:
        return row.add("hung", f"{case}: {ended}")
    row.remember(ended["peak_mb"])
    said = ended["err"].strip()
    if ended["code"] not in (0, 1, 2) or "Traceback" in said:
        return row.add("crashed", f"{case}: {ended['code']} {said[-200:]}")
    if ended["code"] == 0:
        whole = not broken(writer, folder) and writer.same(writer.left(folder), undisturbed)
        return row.add("survived" if whole else "wrong", f"{case}: exit code 0, nothing whole")
    if not said:
        return row.add("crashed", f"{case}: exit code {ended['code']} without a word")
    if writer.old and target.read_bytes() != OLDER:
        return row.add("wrong", f"{case}: the older file is gone")
    if litter := [name for name in leftovers(folder) if name.endswith((".part", ".lock"))]:
        return row.add("wrong", f"{case}: left behind {litter}")
    if writer.name == "export":
        return row.add("refused")
    ended = worker.ask({**job, "command": writer.again}, LONGEST + 60)
    if ended.get("code") != 0 or broken(writer, folder):
        return row.add("crashed", f"{case}, then with room: {ended.get('err', ended)}")
    whole = writer.same(writer.left(folder), undisturbed)
    return row.add("refused" if whole else "wrong", f"{case}, then with room: other contents")
