"""What `igd predict` leaves in a folder: a table that is complete up to its last row, anomaly
maps as pictures, and raw maps.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from igd.errors import UserError
from igd.evaluation.overlay import as_grey16, overlay
from igd.files import atomic, make_folder, remove_parts, write_text
from igd.inference.predictor import Prediction, Predictor

TableFormat = Literal["csv", "jsonl"]
MapFormat = Literal["npy", "png16"]
ORIGIN = ".igd-predict.json"  # what the rows of a table come from


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
    ) -> None:
        """With `resume`, go on where an earlier call ended that was `made_from` the same."""
        self.folder, self.predictor, self.maps = make_folder(folder), predictor, maps
        self.map_folder = make_folder(folder / "maps") if maps else None
        path = folder / f"scores.{table}"
        if path.exists() and not resume:
            raise UserError(
                f"{path}: scores are there already; score what is missing with --resume, choose "
                f"another folder, or delete it"
            )
        _check_origin(folder / ORIGIN, {"maps": maps, **(made_from or {})}, path.exists())
        remove_parts(folder)
        self.done = read_paths(path, table) if path.exists() else set()
        self.table = Table(path, table)

    def write(self, name: str, row: dict[str, Any], prediction: Prediction) -> None:
        """A prediction that kept its image: its anomaly map as `name`.png, its raw map where
        wanted, its row.
        """
        assert prediction.image is not None
        limits = self.predictor.background_level_, self.predictor.pixel_threshold_
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic(self.folder / f"{name}.png") as part:
            overlay(prediction.image, prediction.map, *limits).save(part, format="PNG")
        if self.map_folder and self.maps:
            (self.map_folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_map(self.map_folder / name, prediction.map, self.maps)
        self.table.write(row)


def write_map(path: Path, anomaly_map: NDArray[np.float32], kind: MapFormat) -> None:
    """A raw map, without a suffix in `path`: float32 as .npy, or a 16-bit grey .png in which
    0..65535 means 0..1.
    """
    with (
        atomic(path.with_name(f"{path.name}.{kind.removesuffix('16')}")) as part,
        part.open("wb") as file,
    ):
        if kind == "npy":
            np.save(file, anomaly_map, allow_pickle=False)
        else:
            as_grey16(anomaly_map).save(file, format="PNG")


def read_paths(path: Path, kind: TableFormat) -> set[str]:
    """The images that a table has rows of; a last row that was cut off is taken out of the file."""
    contents = path.read_bytes()
    whole = contents[: contents.rfind(b"\n") + 1]
    if whole != contents:
        with atomic(path) as part:
            part.write_bytes(whole)
    try:
        text = whole.decode("utf-8")
        rows: Any = (
            csv.DictReader(io.StringIO(text, newline=""))
            if kind == "csv"
            else map(json.loads, text.splitlines())
        )
        return {as_written(row["path"]) for row in rows}
    except (ValueError, KeyError, TypeError, csv.Error):
        raise UserError(f"{path}: not a table of scores; delete it to start anew") from None


def as_written(path: str) -> str:
    """A path as a table has it: bytes that are no UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _check_origin(path: Path, origin: dict[str, Any], resumed: bool) -> None:
    """Rows of one table come from one model: what they come from is kept beside them."""
    if resumed:
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = None
        if before != origin:
            raise UserError(
                f"{path.parent}: its scores come from another model or other flags; choose another "
                f"folder, or delete it"
            )
        return
    write_text(path, json.dumps(origin))


class Table:
    """A CSV or JSON-lines file that is complete up to the last row written, whatever happens
    next.
    """

    def __init__(self, path: Path, kind: TableFormat) -> None:
        self.header_is_written = path.exists() and path.stat().st_size > 0
        self.file = path.open("a", newline="", encoding="utf-8", errors="backslashreplace")
        self.kind = kind

    def write(self, row: dict[str, Any]) -> None:
        if self.kind == "jsonl":
            self.file.write(json.dumps(row) + "\n")
        else:
            writer = csv.DictWriter(self.file, list(row))
            if not self.header_is_written:
                writer.writeheader()
                self.header_is_written = True
            writer.writerow(row)
        self.file.flush()
