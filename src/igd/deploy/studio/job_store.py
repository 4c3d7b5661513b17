"""Jobs as the database keeps them: what is asked, how far it is, what came of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from igd.deploy.server.http_errors import RequestError
from igd.deploy.studio.database import Database, now

ACTIVE = ("queued", "running")
RESUMABLE = ("stopped", "failed")
MOST_LISTED = 200
MOST_SAID = 100  # messages of a job
FIELDS = (
    "id, created, started, finished, kind, model, spec, state, stop, step, done, total, share, "
    "seconds_left, said, result, error"
)


class JobStore:
    """The table of jobs; any thread and any process may ask."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, kind: str, model: str, spec: dict[str, Any]) -> int:
        with self.database.opened() as connection:
            made = connection.execute(
                "insert into jobs (created, kind, model, spec, state) "
                "values (?, ?, ?, ?, 'queued')",
                (now(), kind, model, json.dumps(spec)),
            )
            return int(made.lastrowid or 0)

    def get(self, number: int) -> dict[str, Any]:
        with self.database.opened() as connection:
            row = connection.execute(
                f"select {FIELDS} from jobs where id = ?", (number,)
            ).fetchone()
            if row is None:
                raise RequestError(404, f"there is no job {number}; it may have been deleted")
            pictures = connection.execute(
                "select name, number, odd, score, p_value from job_pictures where job_id = ? "
                "order by odd desc, score desc",
                (number,),
            ).fetchall()
            (ahead,) = connection.execute(
                "select count(*) from jobs where id < ? and state in ('queued', 'running')",
                (number,),
            ).fetchone()
        return {
            **_told(row),
            "ahead": ahead if row["state"] == "queued" else 0,
            "pictures": [dict(each) for each in pictures],
        }

    def list(self) -> list[dict[str, Any]]:
        """The newest first."""
        with self.database.opened() as connection:
            rows = connection.execute(
                f"select {FIELDS} from jobs order by id desc limit {MOST_LISTED}"
            ).fetchall()
        return [_told(row) for row in rows]

    def in_state(self, *states: str) -> Iterator[dict[str, Any]]:
        """All jobs in one of these states, however old."""
        with self.database.opened() as connection:
            rows = connection.execute(
                f"select {FIELDS} from jobs where state in ({', '.join('?' * len(states))})", states
            ).fetchall()
        return map(_told, rows)

    def take(self) -> dict[str, Any] | None:
        """The oldest job that waits, which runs from now on."""
        with self.database.opened() as connection:
            row = connection.execute(
                "update jobs set state = 'running', started = ?, stop = 0, error = null, "
                "step = null, done = null, total = null, share = null, seconds_left = null, "
                "said = '[]' where id = (select min(id) from jobs where state = 'queued') "
                f"returning {FIELDS}",
                (now(),),
            ).fetchone()
        return row and _told(row)

    def recover(self) -> None:
        """What ran when the server ended waits again, and goes on where its checkpoint is."""
        with self.database.opened() as connection:
            connection.execute("update jobs set state = 'queued' where state = 'running'")

    def finish(self, number: int, state: str, error: str | None = None) -> None:
        with self.database.opened() as connection:
            connection.execute(
                "update jobs set state = ?, finished = ?, seconds_left = null, "
                "error = coalesce(?, error) where id = ?",
                (state, now(), error, number),
            )

    def advance(self, number: int, **progress: Any) -> None:
        """How far a job is: columns of its row."""
        assigned = ", ".join(f"{name} = ?" for name in progress)
        with self.database.opened() as connection:
            connection.execute(
                f"update jobs set {assigned} where id = ?", (*progress.values(), number)
            )

    def succeed(self, number: int, result: dict[str, Any]) -> None:
        self.advance(number, result=json.dumps(result), share=1.0)

    def ask_to_stop(self, number: int) -> dict[str, Any]:
        """A job that waits stops at once, one that runs as soon as it can."""
        with self.database.opened() as connection:
            connection.execute(
                "update jobs set stop = 1 where id = ? and state = 'running'", (number,)
            )
            connection.execute(
                "update jobs set state = 'stopped' where id = ? and state = 'queued'", (number,)
            )
        return self.get(number)

    def is_to_stop(self, number: int) -> bool:
        with self.database.opened() as connection:
            row = connection.execute("select stop from jobs where id = ?", (number,)).fetchone()
        return row is None or bool(row["stop"])

    def resume(self, number: int) -> dict[str, Any]:
        with self.database.opened() as connection:
            connection.execute(
                "update jobs set state = 'queued', finished = null where id = ? "
                "and state in (?, ?)",
                (number, *RESUMABLE),
            )
        return self.get(number)

    def delete(self, number: int) -> None:
        job = self.get(number)
        if job["state"] == "running":
            raise RequestError(409, "the job is running; stop it first")
        with self.database.opened() as connection:
            connection.execute("delete from jobs where id = ?", (number,))

    def uses_set(self, set_id: int) -> bool:
        """Whether a job that waits, runs or was stopped needs a set of images. One that failed
        keeps nobody from deleting them; it can't be taken up then.
        """
        return any(job["spec"].get("set") == set_id for job in self.in_state(*ACTIVE, "stopped"))

    def forget_pictures(self, job: int) -> None:
        with self.database.opened() as connection:
            connection.execute("delete from job_pictures where job_id = ?", (job,))

    def keep_picture(self, job: int, **picture: Any) -> None:
        with self.database.opened() as connection:
            connection.execute(
                f"insert or replace into job_pictures (job_id, {', '.join(picture)}) "
                f"values (?{', ?' * len(picture)})",
                (job, *picture.values()),
            )

    def picture(self, number: int, name: str, kind: str) -> bytes:
        """The photo or the layer of an image that a job showed."""
        column = {"photo": "photo", "layer": "layer"}[kind]
        with self.database.opened() as connection:
            row = connection.execute(
                f"select {column} as picture from job_pictures where job_id = ? and name = ?",
                (number, name),
            ).fetchone()
        if row is None:
            raise RequestError(404, "there is no such picture")
        return bytes(row["picture"])


def _told(row: sqlite3.Row) -> dict[str, Any]:
    told = dict(row)
    for name in ("spec", "said", "result"):
        told[name] = told[name] and json.loads(told[name])
    return told
