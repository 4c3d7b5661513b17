"""A manifest: a CSV or JSON-lines file that lists images with their label, split and mask.

A manifest may come from anywhere, so no path in it is trusted: all must lie in one folder, the
manifest's own or a given root.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from igd.data.dataset import Dataset
from igd.data.labels import read_labels
from igd.data.sample import NORMAL, Sample, Split
from igd.errors import DataWarning, UserError

MANIFESTS = (".csv", ".jsonl")
COLUMNS = ("path", "label", "split", "mask")
OTHER_NAMES = {  # of columns, as other programs call them
    "filename": "path",
    "file_name": "path",
    "filepath": "path",
    "image": "path",
    "image_path": "path",
}
VALIDATION: Final = "validation"
ListedSplit = Split | Literal["validation"]
SPLITS: dict[str, ListedSplit] = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "val": VALIDATION,
    "valid": VALIDATION,
    VALIDATION: VALIDATION,
}
DELIMITERS = ",;\t"  # Excel writes the second where a comma is the decimal sign


def read_manifest(path: Path, root: Path | None = None, group: str | None = None) -> Dataset:
    """The images that a file lists, relative to its own folder or to `root`; those of one value in
    the column `group` belong together.
    """
    read = COLUMNS if group is None else (*COLUMNS, _column(group))
    rows = list(_rows(path, read))
    if not rows:
        raise UserError(
            f"{path}: lists no images; write one a line under the columns {', '.join(COLUMNS)}"
        )
    folder = (root or path.parent).resolve()
    labelled = any("label" in row for _, row in rows)
    kinds = [_kind(row, place) if labelled else NORMAL for place, row in rows]
    labels, classes = read_labels(kinds, str(path))
    _mention_unknown(path, rows, read)
    used = _used_splits([_split(row, place) for place, row in rows], path)
    samples = []
    for (place, row), kind, label, split in zip(rows, kinds, labels, used, strict=True):
        if split is None:
            continue
        image = _inside(row.get("path", ""), folder, place)
        mask = _inside(row["mask"], folder, place) if row.get("mask") else None
        shared = None if group is None else _group(row, group, place)
        name = str(image.relative_to(folder))
        samples.append(Sample(name, image, kind, label, mask, split, shared))
    grouped_by = "" if group is None else f"column {_column(group)}"
    return Dataset(path.stem, samples, str(path), classes, grouped_by=grouped_by)


def _kind(row: dict[str, str], place: str) -> str:
    """A row's label; where others have one, an image without is not taken for a normal one."""
    if not row.get("label"):
        raise UserError(
            f"{place}: the image has no label; write good, or the name of its defect or class"
        )
    return row["label"]


def _group(row: dict[str, str], group: str, place: str) -> str:
    """What a row has in the column that says which images belong together."""
    if _column(group) not in row:
        raise UserError(
            f"{place}: no column is called {group!r}; there are {', '.join(row)} (--group)"
        )
    if not row[_column(group)]:
        raise UserError(f"{place}: {group} is empty; every image needs a group (--group)")
    return row[_column(group)]


def _rows(path: Path, read: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row's place, for error messages, and its columns as text."""
    try:
        with path.open(encoding=_encoding(path), newline="") as lines:
            yield from (
                _csv_rows(path, lines)
                if path.suffix.lower() == ".csv"
                else _json_rows(path, lines, read)
            )
    except (UnicodeError, csv.Error) as error:
        raise UserError(
            f"{path}: is not text in UTF-8 ({error}); save it as such, or copy it again"
        ) from None


def _csv_rows(path: Path, lines: Any) -> Iterator[tuple[str, dict[str, str]]]:
    first = lines.readline()
    if first.lower().startswith("sep="):  # how Excel is told the delimiter
        first = lines.readline()
    delimiter = max(DELIMITERS, key=first.count)
    names = [_column(name) for name in next(csv.reader([first], delimiter=delimiter), [])]
    reader = csv.DictReader(lines, names, delimiter=delimiter)
    if "path" not in names:
        raise UserError(
            f"{path}: its first line must name the columns, `path` among them: {','.join(COLUMNS)}"
        )
    for row in reader:
        place = f"{path}, line {reader.line_num + 1}"
        if not any(value for value in row.values()):
            continue  # an empty line, as Excel leaves them at the end
        if None in row or None in row.values():
            raise UserError(
                f"{place}: not as many fields as the first line has; the file is cut off, or a "
                f"{'comma' if delimiter == ',' else 'delimiter'} needs quotes"
            )
        yield place, {name: value.strip() for name, value in row.items() if name}


def _json_rows(
    path: Path, lines: Any, read: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, str]]]:
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
                name: _text(value, name, place) if name in read else ""
                for name, value in ((_column(name), value) for name, value in row.items())
                if value is not None
            },
        )


def _text(value: Any, name: str, place: str) -> str:
    if isinstance(value, bool | int):
        return str(int(value))
    if not isinstance(value, str):
        raise UserError(f"{place}: {name} is {value!r}; it must be text or a whole number")
    return value.strip()


def _split(row: dict[str, str], place: str) -> ListedSplit:
    split = row.get("split")
    if split is None and "label" not in row:
        return "train"  # a bare list of images, as a plain folder: normal, to learn from
    if split is not None and split.lower() in SPLITS:
        return SPLITS[split.lower()]
    raise UserError(
        f"{place}: the split is {split!r}; every labelled image needs one, train, val or test"
    )


def _used_splits(splits: list[ListedSplit], path: Path) -> list[Split | None]:
    """Validation images are for testing where there are no others, else for nothing."""
    count = Counter(splits)
    tested: Split | None = None if count["test"] else "test"
    if count[VALIDATION]:
        use = "used for testing" if tested else "left out, as there are test images"
        _warn(f"{path}: {count[VALIDATION]} images of the split 'val' are {use}")
    return [tested if split == "validation" else split for split in splits]


def _mention_unknown(
    path: Path, rows: list[tuple[str, dict[str, str]]], read: tuple[str, ...]
) -> None:
    unknown = dict.fromkeys(name for _, row in rows for name in row if name not in read)
    if unknown:
        _warn(f"{path}: not used: the columns {', '.join(unknown)}; igd reads {', '.join(read)}")


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=2)


def _column(name: str) -> str:
    """A column's name as it is known here, however it was written."""
    plain = name.strip().lower()
    return OTHER_NAMES.get(plain, plain)


def _encoding(path: Path) -> str:
    """UTF-8, with or without a mark at its beginning, or UTF-16, which has one."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _inside(listed: str, folder: Path, place: str) -> Path:
    """A listed path as a file within the folder; one that leads out of it, by whatever way, is
    refused.
    """
    if not listed or "\0" in listed:
        raise UserError(f"{place}: the path is {listed!r}; name an image file")
    if "\\" in listed and not (folder / listed).exists():
        listed = listed.replace("\\", "/")  # as Windows writes paths
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
