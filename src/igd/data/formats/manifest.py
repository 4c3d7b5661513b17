"""A manifest: a CSV or JSON-lines file that lists images with their label, split and mask.

A manifest may come from anywhere, so no path in it is trusted: all must lie in one folder, the
manifest's own or a given root.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from igd.data.dataset import Dataset
from igd.data.labels import read_labels
from igd.data.sample import NORMAL, Sample, Split
from igd.errors import UserError

MANIFESTS = (".csv", ".jsonl")
COLUMNS = ("path", "label", "split", "mask")
SPLITS: dict[str | None, Split] = {"train": "train", "test": "test"}


def read_manifest(path: Path, root: Path | None = None) -> Dataset:
    """The images that a file lists, relative to its own folder or to `root`."""
    rows = list(_rows(path))
    if not rows:
        raise UserError(
            f"{path}: lists no images; write one a line under the columns {', '.join(COLUMNS)}"
        )
    folder = (root or path.parent).resolve()
    kinds = [row.get("label", NORMAL) for _, row in rows]
    labels, classes = read_labels(kinds, str(path))
    samples = []
    for (place, row), kind, label in zip(rows, kinds, labels, strict=True):
        image = _inside(row.get("path", ""), folder, place)
        mask = _inside(row["mask"], folder, place) if row.get("mask") else None
        samples.append(
            Sample(str(image.relative_to(folder)), image, kind, label, mask, _split(row, place))
        )
    return Dataset(path.stem, samples, str(path), classes)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row's place, for error messages, and its columns as text."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield from (
                _csv_rows(path, lines) if path.suffix.lower() == ".csv" else _json_rows(path, lines)
            )
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"{path}: is not text in UTF-8 ({error}); save it as such, or copy it again"
        ) from None


def _csv_rows(path: Path, lines: Any) -> Iterator[tuple[str, dict[str, str]]]:
    reader = csv.DictReader(lines)
    if "path" not in (reader.fieldnames or []):
        raise UserError(
            f"{path}: its first line must name the columns, `path` among them: {','.join(COLUMNS)}"
        )
    for row in reader:
        place = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise UserError(
                f"{place}: not as many fields as the first line has; the file is cut off, or a "
                f"comma needs quotes"
            )
        yield place, {name: value.strip() for name, value in row.items()}


def _json_rows(path: Path, lines: Any) -> Iterator[tuple[str, dict[str, str]]]:
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(
                f"{place}: not JSON ({error.msg}); the file is cut off or damaged"
            ) from None
        if not isinstance(row, dict):
            raise UserError(
                f"{place}: must be an object such as "
                f'{{"path": "001.png", "label": "good", "split": "train"}}'
            )
        yield (
            place,
            {
                name: _text(value, name, place)
                for name, value in row.items()
                if name in COLUMNS and value is not None
            },
        )


def _text(value: Any, name: str, place: str) -> str:
    if isinstance(value, bool | int):
        return str(int(value))
    if not isinstance(value, str):
        raise UserError(f"{place}: {name} is {value!r}; it must be text or a whole number")
    return value.strip()


def _split(row: dict[str, str], place: str) -> Split:
    split = row.get("split")
    if split is None and "label" not in row:
        return "train"  # a bare list of images, as a plain folder: normal, to learn from
    if split in SPLITS:
        return SPLITS[split]
    raise UserError(
        f"{place}: the split is {split!r}; every labelled image needs one, train or test"
    )


def _inside(listed: str, folder: Path, place: str) -> Path:
    """A listed path as a file within the folder; one that leads out of it, by whatever way, is
    refused.
    """
    if not listed or "\0" in listed:
        raise UserError(f"{place}: the path is {listed!r}; name an image file")
    path = (folder / listed).resolve()
    if not path.is_relative_to(folder):
        raise UserError(
            f"{place}: {listed} leads out of {folder}; give the folder that holds all of the "
            f"images (--root)"
        )
    if not path.is_file():
        raise UserError(
            f"{place}: {listed}: no such file in {folder}; paths are relative to the manifest, or "
            f"to --root"
        )
    return path
