"""The history: what models said of images and what people say of them. It is bounded; the oldest
go first.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.schemas import ImageResponse
from igd.deploy.studio.database import now
from igd.deploy.studio.outcomes import Outcome
from igd.deploy.studio.realised_rates import Counts
from igd.deploy.studio.workspace import Workspace, within
from igd.files import atomic
from igd.inference.predictor import Predictor

Truth = Literal["good", "defect"]
FIELDS = (
    "id, time, model, version, name, score, p_value, threshold, rate, is_anomalous, outcome, "
    "remarks, width, height, regions, file is not null as kept, truth, note, truth_time"
)
CSV = (
    *("time", "image", "model", "score", "p_value", "max_false_alarms", "is_anomalous", "outcome"),
    *("person", "note"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a spreadsheet begins to compute
SUFFIX = ".image"  # of files whose format is in themselves
MOST_SHOWN = 100


class Limits(NamedTuple):
    """How much history there is."""

    verdicts: int = 5000
    image_bytes: int = 2_000_000_000  # of inspected images, as they were sent; 0: none is kept


class Filter(NamedTuple):
    """Which verdicts someone wants to see."""

    model: str | None = None
    alarms: bool = False
    since: str | None = None
    until: str | None = None
    text: str | None = None
    before: int | None = None  # the number of a verdict: only older ones
    after: int | None = None  # only newer ones, the next of them first

    def where(self) -> tuple[str, list[Any]]:
        parts = ["1"]
        values: list[Any] = []
        for condition, value in (
            ("model = ?", self.model),
            ("time >= ?", self.since),
            ("time < ?", self.until),
            ("id < ?", self.before),
            ("id > ?", self.after),
        ):
            if value is not None:
                parts.append(condition)
                values.append(value)
        if self.alarms:
            parts.append("is_anomalous")
        if self.text:
            escaped = self.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            parts.append("(name like ? escape '\\' or note like ? escape '\\')")
            values += [f"%{escaped}%"] * 2
        return " and ".join(parts), values


class Verdicts:
    """The table of verdicts, and the images that it is about."""

    def __init__(self, workspace: Workspace, limits: Limits) -> None:
        self.workspace, self.database, self.limits = workspace, workspace.database, limits

    def add(
        self,
        model: str,
        version: str,
        rate: float,
        said: ImageResponse,
        outcome: Outcome,
        remarks: tuple[str, ...],
        photo: bytes,
        content: bytes,
    ) -> int:
        """Keep a verdict, its pictures and, as far as there is room, the image."""
        row = {
            "time": now(),
            "model": model,
            "version": version,
            "name": said.name,
            "rate": rate,
            "outcome": outcome,
            "remarks": json.dumps(remarks),
            "regions": json.dumps([each.model_dump() for each in said.regions]),
            **{
                name: getattr(said, name)
                for name in ("score", "p_value", "threshold", "is_anomalous", "width", "height")
            },
        }
        with self.database.opened() as connection:
            number = connection.execute(
                f"insert into verdicts ({', '.join(row)}) values ({', '.join('?' * len(row))})",
                tuple(row.values()),
            ).lastrowid
            connection.execute(
                "insert into verdict_pictures values (?, ?, ?)",
                (number, photo, base64.b64decode(said.map or "")),
            )
        assert number is not None
        if 0 < len(content) <= self.limits.image_bytes:
            place = self.workspace.inspected / f"{number}{SUFFIX}"
            with atomic(place) as part:
                part.write_bytes(content)
            self._update(number, file=place.name, bytes=len(content))
        self._forget_oldest()
        return number

    def find(self, asked: Filter, most: int = MOST_SHOWN) -> dict[str, Any]:
        """Verdicts, the newest first, and how many there are in all."""
        where, values = asked.where()
        total, counted = asked._replace(before=None, after=None).where()
        order = "desc" if asked.after is None else "asc"
        with self.database.opened() as connection:
            rows = connection.execute(
                f"select {FIELDS} from verdicts where {where} order by id {order} limit ?",
                (*values, min(most, MOST_SHOWN)),
            ).fetchall()
            (count,) = connection.execute(
                f"select count(*) from verdicts where {total}", counted
            ).fetchone()
        return {"total": count, "verdicts": [_told(row) for row in rows]}

    def get(self, number: int) -> dict[str, Any]:
        with self.database.opened() as connection:
            row = connection.execute(
                f"select {FIELDS} from verdicts where id = ?", (number,)
            ).fetchone()
        if row is None:
            raise RequestError(
                404, f"there is no verdict {number}; the oldest are forgotten as new ones come"
            )
        return _told(row)

    def label(self, number: int, truth: Truth | None, note: str) -> dict[str, Any]:
        """What a person says that an image is."""
        self.get(number)
        self._update(number, truth=truth, note=note, truth_time=now() if truth else None)
        return self.get(number)

    def picture(self, number: int, kind: Literal["thumbnail", "layer"]) -> bytes:
        with self.database.opened() as connection:
            row = connection.execute(
                f"select {kind} as picture from verdict_pictures where verdict_id = ?", (number,)
            ).fetchone()
        if row is None:
            raise RequestError(404, "there is no such picture")
        return bytes(row["picture"])

    def table(self, asked: Filter) -> Iterator[str]:
        """All that a filter finds, as the lines of a CSV file."""
        where, values = asked.where()
        line = io.StringIO()
        writer = csv.writer(line)
        writer.writerow(CSV)
        with self.database.opened() as connection:
            for row in connection.execute(
                f"select {FIELDS} from verdicts where {where} order by id desc", values
            ):
                cells = [
                    row[name] for name in ("time", "name", "model", "score", "p_value", "rate")
                ]
                decided = ["true" if row["is_anomalous"] else "false", row["outcome"]]
                writer.writerow(
                    [_plain(each) for each in (*cells, *decided, row["truth"] or "", row["note"])]
                )
                yield line.getvalue()
                line.seek(0)
                line.truncate()
        yield line.getvalue()

    def counts(self, model: str, version: str) -> Counts:
        """What a model said since it was last trained or calibrated, by what people said."""
        with self.database.opened() as connection:
            rows = connection.execute(
                "select is_anomalous, truth, count(*) as count from verdicts "
                "where model = ? and version = ? group by is_anomalous, truth",
                (model, version),
            ).fetchall()
        found = {(bool(row["is_anomalous"]), row["truth"]): row["count"] for row in rows}
        truths = ("good", "defect", None)
        return Counts(
            *(found.get((alarm, truth), 0) for alarm in (True, False) for truth in truths)
        )

    def scores(self, model: str, version: str) -> list[tuple[float, bool]]:
        """Of all images since then, the oldest first."""
        with self.database.opened() as connection:
            rows = connection.execute(
                "select score, is_anomalous from verdicts "
                "where model = ? and version = ? order by id",
                (model, version),
            ).fetchall()
        return [(row["score"], bool(row["is_anomalous"])) for row in rows]

    def kept_images(self, model: str, labelled: bool) -> list[tuple[str, str, int]]:
        """Name, place and label of images that were inspected with a model and are still kept:
        those that people labelled, or all that pass for good.
        """
        good = "truth = 'good' or (truth is null and not is_anomalous)"
        condition = "truth is not null" if labelled else good
        with self.database.opened() as connection:
            rows = connection.execute(
                f"select id, name, file, truth from verdicts "
                f"where model = ? and file is not null and ({condition}) order by id",
                (model,),
            ).fetchall()
        return [
            (
                f"{row['name']} #{row['id']}",
                f"inspected/{row['file']}",
                int(row["truth"] == "defect"),
            )
            for row in rows
        ]

    def image_file(self, number: int) -> Path:
        """The image as it was sent."""
        with self.database.opened() as connection:
            row = connection.execute("select file from verdicts where id = ?", (number,)).fetchone()
        if row is None or row["file"] is None:
            raise RequestError(404, "the image itself is no longer kept, only small pictures of it")
        return within(self.workspace.inspected, row["file"])

    def _update(self, number: int, **changed: Any) -> None:
        assigned = ", ".join(f"{name} = ?" for name in changed)
        with self.database.opened() as connection:
            connection.execute(
                f"update verdicts set {assigned} where id = ?", (*changed.values(), number)
            )

    def _forget_oldest(self) -> None:
        with self.database.opened() as connection:
            gone = connection.execute(
                "delete from verdicts where id <= (select max(id) from verdicts) - ? "
                "returning file",
                (self.limits.verdicts,),
            ).fetchall()
            gone += connection.execute(
                "update verdicts set file = null where id in (select id from (select id, "
                "sum(bytes) over (order by id desc) as so_far from verdicts "
                "where file is not null) where so_far > ?) returning id || ? as file",
                (self.limits.image_bytes, SUFFIX),
            ).fetchall()
        for row in gone:
            if row["file"]:
                within(self.workspace.inspected, row["file"]).unlink(missing_ok=True)


def version_of(predictor: Predictor) -> str:
    """What a model is known by in the history: another training or calibration is another."""
    calibration = predictor.calibration_
    scores = np.asarray(calibration.scores, dtype=np.float64).tobytes()
    run = str(predictor.provenance_.get("fingerprint"))
    return hashlib.sha256(scores + run.encode()).hexdigest()[:16]


def _told(row: sqlite3.Row) -> dict[str, Any]:
    told = dict(row)
    for name in ("remarks", "regions"):
        told[name] = json.loads(told[name])
    for name in ("is_anomalous", "kept"):
        told[name] = bool(told[name])
    return told


def _plain(value: Any) -> Any:
    """Text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
