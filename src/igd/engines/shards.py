"""Scores in a folder: a file for every so many images, and a manifest that says which files count.

A file is written whole, and then its line is added to the manifest. Whatever a crash leaves between
the two is written again by the next call, which scores what the manifest does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from igd.errors import UserError
from igd.evaluation.results import (
    COLUMNS,
    Tally,
    as_written,
    check_origin,
    refuse_earlier,
    whole_lines,
)
from igd.files import atomic, make_folder, remove_parts

ShardFormat = Literal["jsonl", "parquet"]
SHARD_FORMATS = ("jsonl", "parquet")
MANIFEST = "manifest.jsonl"
BATCHES = 16  # of the model in a shard: work that is lost with a worker, and rows in a file


class Shard(NamedTuple):
    """Images that are scored in one piece, by one worker."""

    number: int
    names: list[str]


class ScoredShard(NamedTuple):
    """What became of a shard."""

    number: int
    rows: list[dict[str, Any]]  # an image each, as tables have them
    mismatches: dict[str, list[str]]  # of those that differ from what the model learnt from
    worker: str  # machine and process
    restarted: bool  # whether that worker was lost before, and started again
    seconds: float


class ShardFolder:
    """The one writer of a folder of shards."""

    def __init__(
        self,
        folder: Path,
        kind: ShardFormat,
        made_from: dict[str, Any],
        *,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        """With `resume`, go on where an earlier call ended that was `made_from` the same; with
        `overwrite`, replace its shards.
        """
        self.folder, self.kind, self.manifest = make_folder(folder), kind, folder / MANIFEST
        if overwrite:
            self.manifest.unlink(missing_ok=True)
            for path in folder.glob("scores-*"):
                path.unlink()
        refuse_earlier(self.manifest, resume)
        origin = {"columns": list(COLUMNS), "format": kind, **made_from}
        check_origin(folder, origin, origin if self.manifest.exists() else ())
        remove_parts(folder)
        self.done, self.tally, self.next_number = set[str](), Tally(), 0
        for line in self._lines():
            self.next_number = max(self.next_number, int(line["number"]) + 1)
            for row in self._read(folder / str(line["shard"])):
                self.done.add(as_written(row["path"]))
                self.tally.add(row)

    def plan(self, names: Sequence[str], batch: int) -> list[Shard]:
        """What is still to score, in shards. Those of an earlier call are cut out where they were,
        so that images are scored in the same batches as without a stop.
        """
        size = BATCHES * batch
        cut = (names[first : first + size] for first in range(0, len(names), size))
        missing = ([name for name in some if as_written(name) not in self.done] for some in cut)
        return [
            Shard(number, some)
            for number, some in enumerate(filter(None, missing), self.next_number)
        ]

    def write(self, scored: ScoredShard) -> None:
        """Write a shard, then its line in the manifest: from then on it counts."""
        path, counted = self.folder / f"scores-{scored.number:06d}.{self.kind}", Tally()
        for row in scored.rows:
            counted.add(row)
            self.tally.add(row)
        with atomic(path) as part:
            if self.kind == "parquet":
                _write_parquet(part, scored.rows)
            else:
                lines = (json.dumps(row) + "\n" for row in scored.rows)
                part.write_text("".join(lines), encoding="utf-8")
        line = {
            "number": scored.number,
            "shard": path.name,
            "images": counted.images,
            "alarms": counted.alarms,
            "unreadable": counted.unreadable,
            "worker": scored.worker,
            "seconds": round(scored.seconds, 3),
        }
        with self.manifest.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _lines(self) -> Iterator[dict[str, Any]]:
        """The manifest, without a last line that was cut off."""
        if not self.manifest.exists():
            return
        try:
            for line in whole_lines(self.manifest).splitlines():
                described = json.loads(line)
                if not described.keys() >= {"number", "shard"}:
                    raise ValueError(line)
                yield described
        except (ValueError, TypeError, AttributeError):
            raise UserError(f"{self.manifest}: damaged; --overwrite starts anew") from None

    def _read(self, path: Path) -> Iterator[dict[str, Any]]:
        """What a resumed call needs of a shard's rows."""
        needed = ("path", "is_anomalous", "error")
        if path.name != str(path.relative_to(self.folder)) or not path.is_file():
            raise UserError(f"{path}: missing, and the manifest has it; --overwrite starts anew")
        try:
            if self.kind == "parquet":
                from pyarrow import parquet

                yield from parquet.read_table(path, columns=list(needed)).to_pylist()
                return
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                yield {name: row[name] for name in needed}
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(f"{path}: damaged; --overwrite starts anew") from None


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    whole = ("x", "y", "width", "height", "area")
    region = pa.struct(
        [*((name, pa.int32()) for name in whole), ("peak", pa.float64()), ("p_value", pa.float64())]
    )
    schema = pa.schema(
        [
            ("path", pa.string()),
            ("score", pa.float64()),
            ("p_value", pa.float64()),
            ("is_anomalous", pa.bool_()),
            ("regions", pa.list_(region)),
            ("error", pa.string()),
        ]
    )
    named = [{**row, "path": as_written(row["path"])} for row in rows]
    parquet.write_table(pa.Table.from_pylist(named, schema), path)
