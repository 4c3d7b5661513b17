"""The SQLite file of a workspace: several threads and processes read and write it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

from pydantic import Field

from igd.errors import UserError

APPLICATION = 0x69676453  # 'igdS': what the file says it is
VERSION = 1
WAIT = 30.0  # seconds for another process to finish writing
Number = Annotated[int, Field(ge=0, lt=2**63)]  # of a row, as strangers ask: what SQLite can hold

SCHEMA = """
create table sets (
    id integer primary key autoincrement,
    created text not null,
    described text not null  -- 'dropped images', or the folder below the data root
);
create table set_images (
    set_id integer not null references sets on delete cascade,
    number integer not null,
    name text not null,       -- what its owner calls it; text, never a path
    file text,                -- where it is, from the workspace or from the data root
    width integer, height integer,
    label integer not null default 0,
    reason text,              -- why it is left out; null: it is not
    digest text,
    thumbnail blob,
    primary key (set_id, number),
    unique (set_id, name)
);
create table jobs (
    id integer primary key autoincrement,
    created text not null, started text, finished text,
    kind text not null,
    model text not null,
    spec text not null,
    state text not null,      -- queued, running, stopped, done, failed
    stop integer not null default 0,
    step text, done integer, total integer, share real, seconds_left real,
    said text not null default '[]',
    result text, error text
);
create table job_pictures (
    job_id integer not null references jobs on delete cascade,
    name text not null,
    number integer,           -- in the job's set
    odd integer not null,
    score real not null, p_value real not null,
    photo blob not null, layer blob not null,
    primary key (job_id, name)
);
create table verdicts (
    id integer primary key autoincrement,
    time text not null,
    model text not null, version text not null,
    name text not null,
    score real not null, p_value real not null, threshold real not null, rate real not null,
    is_anomalous integer not null,
    outcome text not null, remarks text not null,
    width integer not null, height integer not null, regions text not null,
    file text, bytes integer not null default 0,
    truth text,               -- what a person says it is: 'good' or 'defect'
    note text not null default '', truth_time text
);
create index verdicts_by_model on verdicts (model, id);
create table verdict_pictures (
    verdict_id integer primary key references verdicts on delete cascade,
    thumbnail blob not null, layer blob not null
);
"""


class Database:
    """A connection for each piece of work, so that any thread may ask."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with self.opened() as connection:
                connection.execute("pragma journal_mode = wal")
                self._prepare(connection)
        except sqlite3.DatabaseError as error:
            raise UserError(
                f"{path}: can't be used ({error}); put it aside to start with an empty history: "
                f"models are files of their own"
            ) from None

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """All that is done with the connection is kept, or nothing of it."""
        connection = sqlite3.connect(self.path, timeout=WAIT)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("pragma foreign_keys = on")
            connection.execute("pragma synchronous = normal")
            with connection:
                yield connection
        finally:
            connection.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("pragma user_version").fetchone()
        (application,) = connection.execute("pragma application_id").fetchone()
        if version == 0 and not connection.execute("select 1 from sqlite_master").fetchone():
            connection.executescript(
                f"begin; {SCHEMA} pragma application_id = {APPLICATION}; "
                f"pragma user_version = {VERSION}; commit;"
            )
        elif application != APPLICATION:
            raise UserError(f"{self.path}: is no studio's database; choose another folder")
        elif version > VERSION:
            raise UserError(
                f"{self.path}: was written by a newer igd (format {version}, and this one knows "
                f"{VERSION}); update igd"
            )


def now() -> str:
    """The time as the database keeps it: in UTC, ordered as text."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
