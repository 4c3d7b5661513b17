"""Finished runs: in an SQLite file that is whole after every one of them, and exported from it as
one JSON file with all that is needed to measure again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from igd.benchmark.run import Run
from igd.errors import UserError
from igd.files import check_writable, write_text

KIND = "igd benchmark"  # of an exported file
FORMAT = 1
SCHEMA = f"""
begin;
create table about (format integer not null);
insert into about values ({FORMAT});
create table run (
    key text primary key,
    run text not null,
    result text,  -- null for a run that failed
    error text,
    ended_at text not null
);
create table command (
    command text not null,
    started_at text not null
);
commit;
"""


@dataclass(frozen=True)
class Record:
    """A run that ended, well or not."""

    run: Run
    result: dict[str, Any] | None
    error: str | None
    ended_at: str


class RunStore:
    """The file of a benchmark's runs."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.is_file():
            raise UserError(
                f"{path}: no such file; make it with: igd benchmark run SUITE --store {path}"
            )
        if not path.parent.is_dir():
            raise UserError(f"{path}: there is no folder {path.parent}; create it first")
        self.path = path
        try:
            self.database = sqlite3.connect(path)
            if create and self.database.execute(
                "select count(*) from sqlite_master"
            ).fetchone() == (0,):
                self.database.executescript(SCHEMA)
            version = self.database.execute("select format from about").fetchone()[0]
        except sqlite3.Error as error:
            raise UserError(
                f"{path}: not a store of benchmark results ({error}); choose another file"
            ) from None
        if version > FORMAT:
            raise UserError(
                f"{path}: made by a newer igd (format {version}, this one reads {FORMAT}); upgrade"
            )

    def add(self, run: Run, result: dict[str, Any] | None, error: str | None = None) -> None:
        """Keep how a run ended, in place of how it failed before."""
        row = (run.key, json.dumps(run.to_json()), result and json.dumps(result), error, now())
        with self.database:
            self.database.execute("insert or replace into run values (?, ?, ?, ?, ?)", row)

    def add_command(self, command: str) -> None:
        with self.database:
            self.database.execute("insert into command values (?, ?)", (command, now()))

    def commands(self) -> list[str]:
        """The command lines that filled the store, each once, in order."""
        return list(
            dict.fromkeys(
                row[0]
                for row in self.database.execute("select command from command order by rowid")
            )
        )

    def records(self) -> list[Record]:
        rows = self.database.execute("select run, result, error, ended_at from run order by rowid")
        return [
            Record(Run.from_json(json.loads(run)), result and json.loads(result), *rest)
            for run, result, *rest in rows
        ]

    def finished(self) -> dict[str, Record]:
        """The runs that have a result, by key."""
        return {record.run.key: record for record in self.records() if record.result is not None}

    def close(self) -> None:
        self.database.close()

    @property
    def workplace(self) -> Path:
        """The folder beside the store where unfinished runs keep their checkpoints."""
        return self.path.with_name(self.path.name + ".unfinished")

    def checkpoint(self, run: Run) -> Path:
        return self.workplace / f"{run.key}.checkpoint"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse a second benchmark on the same store; the lock ends with its process, however that
        ends.
        """
        self.workplace.mkdir(exist_ok=True)
        lock = sqlite3.connect(self.workplace / "lock", timeout=0, isolation_level=None)
        try:
            lock.execute("begin exclusive")
        except sqlite3.OperationalError:
            lock.close()
            raise UserError(
                f"{self.path}: another benchmark is writing there; wait for it, or choose another "
                f"store"
            ) from None
        try:
            yield
        finally:
            lock.close()


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def export_runs(store: RunStore, target: Path) -> int:
    """Write every finished run, the commands that made them, and when; returns how many there
    are.
    """
    check_writable(target)
    records = list(store.finished().values())
    if not records:
        raise UserError(f"{store.path}: holds no finished run yet")
    data = ", ".join(sorted({each.run.data for each in records}))
    contents = {
        "kind": KIND,
        "what": f"{data}; the last model of each run",
        "commands": store.commands(),
        "seeds": sorted({each.run.seed for each in records}),
        "recipes": sorted(
            {each.run.settings["recipe"] for each in records if "recipe" in each.run.settings}
        ),
        "date": date.today().isoformat(),
        "runs": [
            {"run": each.run.to_json(), "result": _brief(each.result), "ended_at": each.ended_at}
            for each in records
        ],
    }
    write_text(target, json.dumps(contents, indent=1) + "\n")
    return len(records)


def _brief(result: dict[str, Any] | None) -> dict[str, Any]:
    """A result with the number of moved images in place of their names, which the seed gives
    again.
    """
    assert result is not None
    protocols = [{**each, "moved": len(each["moved"])} for each in result.get("protocols", [])]
    return {**result, "protocols": protocols}


def read_records(path: Path) -> list[Record]:
    """The runs of a store, or of a file that was exported from one."""
    if path.suffix != ".json":
        return RunStore(path).records()
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with: igd benchmark export STORE -o {path}")
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        if contents["kind"] != KIND:
            raise KeyError(KIND)
        return records_of(contents)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not an export of igd benchmark ({error})") from None


def records_of(contents: dict[str, Any]) -> list[Record]:
    return [
        Record(Run.from_json(each["run"]), each["result"], None, each["ended_at"])
        for each in contents["runs"]
    ]
