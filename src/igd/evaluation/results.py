"""What `igd predict` leaves in a folder: a table that is complete up to its last row, heat maps, and raw maps."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from igd.evaluation.overlay import as_grey16, overlay
from igd.files import atomic, make_folder
from igd.judging import Judge, Prediction

TableFormat = Literal["csv", "jsonl"]
MapFormat = Literal["npy", "png16"]


class Results:
    """Writes one image's results after another; a row is written last, so that whatever it speaks of is there."""

    def __init__(self, folder: Path, judge: Judge, table: TableFormat = "csv", maps: MapFormat | None = None) -> None:
        self.folder, self.judge, self.maps = make_folder(folder), judge, maps
        self.map_folder = make_folder(folder / "maps") if maps else None
        self.table = Table(folder / f"scores.{table}", table)

    def write(self, name: str, row: dict[str, Any], prediction: Prediction) -> None:
        """A prediction that kept its image: its heat map as `name`.png, its raw map where wanted, its row."""
        assert prediction.image is not None
        limits = self.judge.usual_heat_, self.judge.pixel_threshold_
        with atomic(self.folder / f"{name}.png") as part:
            overlay(prediction.image, prediction.map, *limits).save(part, format="PNG")
        if self.map_folder and self.maps:
            write_map(self.map_folder / name, prediction.map, self.maps)
        self.table.write(row)


def write_map(path: Path, heat: NDArray[np.float32], kind: MapFormat) -> None:
    """A raw map, without a suffix in `path`: float32 as .npy, or a 16-bit grey .png in which 0..65535 means 0..1."""
    with atomic(path.with_name(f"{path.name}.{kind.removesuffix('16')}")) as part, part.open("wb") as file:
        if kind == "npy":
            np.save(file, heat, allow_pickle=False)
        else:
            as_grey16(heat).save(file, format="PNG")


class Table:
    """A CSV or JSON-lines file that is complete up to the last row written, whatever happens next."""

    def __init__(self, path: Path, kind: TableFormat) -> None:
        self.file = path.open("w", newline="", encoding="utf-8")
        self.kind, self.header_is_written = kind, False

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
