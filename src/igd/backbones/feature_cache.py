"""A frozen backbone's features, kept in a file: each image is encoded once, whoever asks
and however often.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from igd.errors import UserError
from igd.files import make_folder

FORMAT = 2
WAIT = 60.0  # seconds for another process to finish writing
ASKED_AT_ONCE = 500  # images in a query
SCHEMA = """
create table if not exists about (key text primary key, shapes text not null);
create table if not exists seen (
    image blob primary key, checksum integer not null, features blob not null
);
"""

Row = NDArray[np.float32]  # all features of one image
Compute = Callable[[Tensor], list[Tensor]]


class FeatureCache:
    """Outputs of a function of images, by what the images hold; the file's name says which function
    it was.

    A row is there whole or not at all, whenever a process ends, and several processes may share the
    file. What does not bear its own checksum is computed again; a file that is no cache at all is
    made anew.
    """

    def __init__(self, folder: Path, described: object) -> None:
        self.key = hashlib.sha256(
            json.dumps([FORMAT, described], sort_keys=True).encode()
        ).hexdigest()
        self.path = make_folder(folder) / f"{self.key[:32]}.features"
        self.recalled = self.computed = 0  # images, since this object was made

    def __call__(self, pixels: Tensor, compute: Compute) -> list[Tensor]:
        """What `compute` makes of images (b, channels, h, w), of those that are new only."""
        names = [digest(image) for image in pixels]
        known, shapes = self._recall(names)
        new = [number for number, name in enumerate(names) if name not in known]
        self.recalled, self.computed = (
            self.recalled + len(names) - len(new),
            self.computed + len(new),
        )
        if new:
            outputs = compute(pixels[torch.tensor(new)])
            shapes = [tuple(each.shape[1:]) for each in outputs]
            rows = torch.cat([each.reshape(len(new), -1) for each in outputs], dim=1).numpy()
            made = dict(zip((names[number] for number in new), rows, strict=True))
            self._keep(made, shapes)
            known.update(made)
        together = torch.from_numpy(np.stack([known[name] for name in names]))
        parts = together.split([math.prod(shape) for shape in shapes], dim=1)
        return [part.reshape(len(names), *shape) for part, shape in zip(parts, shapes, strict=True)]

    def _recall(self, names: Sequence[bytes]) -> tuple[dict[bytes, Row], list[tuple[int, ...]]]:
        try:
            with _opened(self.path) as database:
                about = database.execute("select key, shapes from about").fetchone()
                if about is None:
                    return {}, []
                shapes = _shapes(about[1])
                if about[0] == self.key and shapes:
                    return dict(_intact(database, names, 4 * sum(map(math.prod, shapes)))), shapes
        except sqlite3.Error as error:
            if isinstance(
                error, sqlite3.OperationalError
            ):  # locked for too long, or a disk that does not answer
                raise UserError(
                    f"{self.path}: features can't be read ({error}); try again, or another folder"
                ) from None
        self.path.unlink()  # damaged, or of something else
        return {}, []

    def _keep(self, made: dict[bytes, Row], shapes: list[tuple[int, ...]]) -> None:
        try:
            with _opened(self.path) as database:
                database.execute(
                    "insert or ignore into about values (?, ?)", (self.key, json.dumps(shapes))
                )
                rows = (
                    (name, zlib.crc32(row.tobytes()), row.tobytes()) for name, row in made.items()
                )
                database.executemany("insert or replace into seen values (?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise UserError(
                f"{self.path}: features can't be kept ({error}); free some space, or do without a "
                f"feature cache"
            ) from None


def _shapes(told: str) -> list[tuple[int, ...]]:
    """Of the features of an image; none where a damaged file tells of none."""
    try:
        return [tuple(operator.index(side) for side in shape) for shape in json.loads(told)]
    except (ValueError, TypeError):
        return []


def digest(image: Tensor) -> bytes:
    """What tells an image from every other."""
    shape = "x".join(map(str, image.shape)).encode()
    return hashlib.blake2b(
        image.contiguous().numpy().tobytes(), digest_size=16, person=shape[:16]
    ).digest()


def _intact(
    database: sqlite3.Connection, names: Sequence[bytes], size: int
) -> Iterator[tuple[bytes, Row]]:
    for first in range(0, len(names), ASKED_AT_ONCE):
        asked = names[first : first + ASKED_AT_ONCE]
        marks = ",".join("?" * len(asked))
        query = f"select image, checksum, features from seen where image in ({marks})"
        for name, checksum, row in database.execute(query, asked):
            if len(row) == size and zlib.crc32(row) == checksum:
                yield name, np.frombuffer(row, np.float32)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A database for one transaction, closed at its end."""
    database = sqlite3.connect(path, timeout=WAIT)
    try:
        database.executescript(SCHEMA)
        with database:
            yield database
    finally:
        database.close()
