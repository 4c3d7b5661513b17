"""What `igd predict` leaves in a folder: a table that is complete up to its last row, anomaly
maps as pictures with a colour bar, and raw maps.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from igd.errors import UserError
from igd.evaluation.colour_bar import colour_bar
from igd.evaluation.overlay import as_grey16, overlay
from igd.evaluation.svg import standalone
from igd.files import atomic, make_folder, remove_parts, write_text
from igd.inference.predictor import Prediction, Predictor
from igd.inference.regions import rare_regions

TableFormat = Literal["csv", "jsonl"]
MapFormat = Literal["npy", "png16"]
COLOURS = "colours.svg"  # what the colours of the pictures mean
ORIGIN = ".igd-predict.json"  # what the rows of a table come from


COLUMNS = ("path", "score", "p_value", "is_anomalous", "regions", "error")
ALIGNMENT = "alignment"  # one more, where the model aligns images


def as_row(path: str, predicted: Prediction | UserError, predictor: Predictor) -> dict[str, Any]:
    """What a table says of an image: score, verdict and regions, or why it could not be read."""
    columns = (*COLUMNS, *((ALIGNMENT,) if predictor.geometry_.align else ()))
    if not isinstance(predicted, Prediction):
        nothing = dict.fromkeys(columns)
        return {**nothing, "path": path, "regions": [], "error": str(predicted)}
    row = {
        "path": path,
        "score": predicted.score,
        "p_value": predicted.p_value,
        "is_anomalous": predicted.is_anomalous,
        "regions": rare_regions(
            predicted.map, predictor.pixel_threshold_, predictor.calibration_.peaks
        ),
        "error": None,
        ALIGNMENT: predicted.pose and predicted.pose._asdict(),
    }
    return {name: row[name] for name in columns}


@dataclass
class Tally:
    """How many images there were, and what became of them."""

    images: int = 0
    alarms: int = 0
    unreadable: int = 0

    def add(self, row: dict[str, Any]) -> None:
        """Count a row, as it was made or as it stands in a table."""
        self.images += 1
        self.alarms += row["is_anomalous"] in (True, "True")
        self.unreadable += bool(row["error"])

    def __str__(self) -> str:
        told = f"{self.images} image{'s' * (self.images != 1)}: "
        told += f"{self.alarms} alarm{'s' * (self.alarms != 1)}"
        return f"{told}, {self.unreadable} unreadable" if self.unreadable else told


class Results:
    """Writes one image's results after another; a row is written last, so that whatever it speaks
    of is there.
    """

    def __init__(
        self,
        folder: Path,
        predictor: Predictor,
        table: TableFormat = "csv",
        maps: MapFormat | None = None,
        *,
        made_from: dict[str, Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        """With `resume`, go on where an earlier call ended that was `made_from` the same; with
        `overwrite`, replace its table, and one of the other format that comes from something else.
        """
        self.folder, self.predictor, self.maps = make_folder(folder), predictor, maps
        self.map_folder = make_folder(folder / "maps") if maps else None
        path = folder / f"scores.{table}"
        made_from = made_from or {}
        (other,) = (folder / f"scores.{kind}" for kind in get_args(TableFormat) if kind != table)
        if overwrite:
            path.unlink(missing_ok=True)
            if differing(folder, made_from):
                other.unlink(missing_ok=True)
        refuse_earlier(path, resume)
        origin = {"maps": maps, "columns": list(COLUMNS), **made_from}
        beside = made_from if other.exists() else ()
        check_origin(folder, origin, origin if path.exists() else beside)
        remove_parts(folder)
        write_text(folder / COLOURS, standalone(colour_bar(*self._limits())))
        self.done, self.unreadable, self.tally = set[str](), set[str](), Tally()
        self.rows = partial(read_rows, path, table)  # those of earlier calls too
        for row in self.rows() if path.exists() else ():
            self._count(row)
        self.table = Table(path, table)

    def has(self, path: str | Path) -> bool:
        """Whether an image has a score."""
        return as_written(str(path)) in self.done

    def score_again(self, paths: Iterable[str | Path]) -> None:
        """Before images are scored: take out the rows of those that could not be read. A file of
        pages may have had a row of its own.
        """
        if not self.unreadable:
            return
        names = {as_written(str(path)) for path in paths}
        again = self.unreadable & (names | {name.rpartition("#")[0] for name in names})
        if again:
            self.table.remove_errors(again)
            self.unreadable -= again
            self.tally.images -= len(again)
            self.tally.unreadable -= len(again)

    def write(self, name: str, row: dict[str, Any], predicted: Prediction | UserError) -> None:
        """A prediction that kept its image: its anomaly map as `name`.png, its raw map where
        wanted, its row. Of an unreadable image there is the row alone.
        """
        if isinstance(predicted, Prediction):
            self._write_pictures(name, predicted)
        self.table.write(row)
        self._count(row)

    def _count(self, row: dict[str, Any]) -> None:
        (self.unreadable if row["error"] else self.done).add(as_written(row["path"]))
        self.tally.add(row)

    def _limits(self) -> tuple[float, float]:
        """Between which colour begins and the outline is drawn."""
        return self.predictor.background_level_, self.predictor.pixel_threshold_

    def _write_pictures(self, name: str, prediction: Prediction) -> None:
        assert prediction.image is not None
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        outside = self.predictor.geometry_.outside(*prediction.image.size, prediction.pose)
        with atomic(self.folder / f"{name}.png") as part:
            picture = overlay(prediction.image, prediction.map, *self._limits(), outside)
            picture.save(part, format="PNG")
        if self.map_folder and self.maps:
            (self.map_folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_map(self.map_folder / name, prediction.map, self.maps)


def write_map(path: Path, anomaly_map: NDArray[np.float32], kind: MapFormat) -> None:
    """A raw map, without a suffix in `path`: float32 as .npy, or a 16-bit grey .png in which
    0..65535 means 0..1.
    """
    # Through memory: into a file, NumPy writes past Python, and is silent where the disk is full.
    contents = io.BytesIO()
    if kind == "npy":
        np.save(contents, anomaly_map, allow_pickle=False)
    else:
        as_grey16(anomaly_map).save(contents, format="PNG")
    with atomic(path.with_name(f"{path.name}.{kind.removesuffix('16')}")) as part:
        part.write_bytes(contents.getvalue())


def read_rows(path: Path, kind: TableFormat) -> Iterator[dict[str, Any]]:
    """The rows of a table."""
    try:
        text = whole_lines(path)
        rows: Any = (
            csv.DictReader(io.StringIO(text, newline=""))
            if kind == "csv"
            else map(json.loads, text.splitlines())
        )
        yield from ({name: row[name] for name in COLUMNS} | row for row in rows)
    except (ValueError, KeyError, TypeError, csv.Error):
        raise UserError(f"{path}: not a table of scores; delete it to start anew") from None


def whole_lines(path: Path) -> str:
    """The text of a file that grows line by line; a last one that was cut off is taken out of
    it.
    """
    contents = path.read_bytes()
    whole = contents[: contents.rfind(b"\n") + 1]
    if whole != contents:
        with atomic(path) as part:
            part.write_bytes(whole)
    return whole.decode("utf-8")


def as_written(path: str) -> str:
    """A path as a table has it: bytes that are no UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def refuse_earlier(path: Path, resume: bool) -> None:
    """Refuse to write over results that nobody asked to replace."""
    if path.exists() and not resume:
        raise UserError(
            f"{path}: scores are there already; score what is missing with --resume, replace "
            f"them with --overwrite, or choose another folder"
        )


def check_origin(folder: Path, origin: dict[str, Any], compared: Iterable[str]) -> None:
    """Rows of one folder come from one model: what they come from is kept beside them, and is
    compared in these respects.
    """
    if changed := differing(folder, {name: origin[name] for name in compared}):
        told = "; ".join(changed)
        raise UserError(
            f"{folder}: its scores come from another model or other flags ({told}); choose another "
            f"folder, or delete them (igd predict --overwrite)"
        )
    write_text(folder / ORIGIN, json.dumps(origin))


def differing(folder: Path, origin: dict[str, Any]) -> list[str]:
    """In what the scores of a folder come from something else, in words."""
    try:
        before = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
        known = isinstance(before, dict)
    except (OSError, ValueError):
        known = False
    if origin and not known:
        return [f"{ORIGIN} does not say which"]
    if "model" in origin and before.get("model") != origin["model"]:
        return ["the model file is another one, or was calibrated or updated since"]
    return [
        f"{name.replace('_', ' ')}: {before.get(name)}, now {value}"
        for name, value in origin.items()
        if before.get(name) != value
    ]


class Table:
    """A CSV or JSON-lines file that is complete up to the last row written, whatever happens
    next.
    """

    def __init__(self, path: Path, kind: TableFormat) -> None:
        self.path, self.kind = path, kind
        self._open()

    def _open(self) -> None:
        self.header_is_written = self.path.exists() and self.path.stat().st_size > 0
        self.file = self.path.open("a", newline="", encoding="utf-8", errors="backslashreplace")

    def write(self, row: dict[str, Any]) -> None:
        if self.kind == "jsonl":
            self.file.write(json.dumps(row) + "\n")
        else:
            writer = csv.DictWriter(self.file, list(row))
            if not self.header_is_written:
                writer.writeheader()
                self.header_is_written = True
            writer.writerow({name: _cell(value) for name, value in row.items()})
        self.file.flush()

    def remove_errors(self, paths: Container[str]) -> None:
        """Write the table anew without what it says of images that could not be read."""
        self.file.close()
        with atomic(self.path) as part:
            kept = Table(part, self.kind)
            for row in read_rows(self.path, self.kind):
                if not row["error"] or as_written(row["path"]) not in paths:
                    kept.write(row)
            kept.file.close()
        self._open()


def _cell(value: Any) -> Any:
    """Regions and poses as JSON, in one field of a CSV file."""
    return json.dumps(value) if isinstance(value, list | dict) else value
