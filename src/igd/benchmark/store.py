"""Finished runs, in an SQLite file that is whole after every one of them, whatever happens next."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from igd.benchmark.runs import Run
from igd.errors import UserError

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


class Store:
    """The file of a benchmark's runs."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.is_file():
            raise UserError(f"{path}: no such file; make it with: igd benchmark run SUITE --store {path}")
        if not path.parent.is_dir():
            raise UserError(f"{path}: there is no folder {path.parent}; create it first")
        self.path = path
        try:
            self.database = sqlite3.connect(path)
            if create and self.database.execute("select count(*) from sqlite_master").fetchone() == (0,):
                self.database.executescript(SCHEMA)
            version = self.database.execute("select format from about").fetchone()[0]
        except sqlite3.Error as error:
            raise UserError(f"{path}: not a store of benchmark results ({error}); choose another file") from None
        if version > FORMAT:
            raise UserError(f"{path}: made by a newer igd (format {version}, this one reads {FORMAT}); upgrade")

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
        return list(dict.fromkeys(row[0] for row in self.database.execute("select command from command order by rowid")))

    def records(self) -> list[Record]:
        rows = self.database.execute("select run, result, error, ended_at from run order by rowid")
        return [Record(Run.from_json(json.loads(run)), result and json.loads(result), *rest) for run, result, *rest in rows]

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
        """Refuse a second benchmark on the same store; the lock ends with its process, however that ends."""
        self.workplace.mkdir(exist_ok=True)
        lock = sqlite3.connect(self.workplace / "lock", timeout=0, isolation_level=None)
        try:
            lock.execute("begin exclusive")
        except sqlite3.OperationalError:
            lock.close()
            raise UserError(f"{self.path}: another benchmark is writing there; wait for it, or choose another store") from None
        try:
            yield
        finally:
            lock.close()


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
