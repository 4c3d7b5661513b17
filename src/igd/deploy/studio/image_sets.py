"""Images to train, calibrate and compare with: where they are, what they are called, and why some
were left out.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from igd.data.decoding import DICOM, FORMATS, SUFFIXES, UnreadableImage, decode_image, read_image
from igd.data.formats.folders import read_folder
from igd.data.frames import file_of
from igd.data.sample import NORMAL, Sample
from igd.deploy.server.http_errors import RequestError
from igd.deploy.studio.data_folders import data_folder
from igd.deploy.studio.database import now
from igd.deploy.studio.pictures import GRID, jpeg
from igd.deploy.studio.workspace import Workspace, within
from igd.errors import UserError
from igd.files import atomic, make_folder
from igd.text import visible

DROPPED = "dropped images"
BELOW_ROOT = "root:"  # before a path that starts at the data root, not at the workspace
LONGEST_NAME = 200
MOST = 20_000  # images in a set
DEFECT = "defect"  # the kind of an image that is labelled anomalous


class ImageSets:
    """The sets of a workspace. All but `samples` answers requests."""

    def __init__(self, workspace: Workspace, data_root: Path | None, max_pixels: int) -> None:
        self.workspace, self.data_root, self.max_pixels = workspace, data_root, max_pixels
        self.database = workspace.database

    def create(self, described: str = DROPPED) -> int:
        with self.database.opened() as connection:
            return int(
                connection.execute(
                    "insert into sets (created, described) values (?, ?)", (now(), described)
                ).lastrowid
                or 0
            )

    def create_from_folder(self, below: str) -> int:
        """The normal images of a folder below the data root, where they are."""
        place = data_folder(self.data_root, below)
        assert self.data_root is not None
        try:
            samples = read_folder(place).training_samples()
        except UserError as error:
            raise RequestError(422, str(error)) from None
        if len(samples) > MOST:
            raise RequestError(422, f"{len(samples):,} images, and a set has at most {MOST:,}")
        found = [self._found(Path(str(sample.image)), place) for sample in samples]
        return self._create_of(below or ".", found)

    def _found(self, path: Path, place: Path) -> dict[str, Any]:
        """What can be said of an image that is there already, without decoding it."""
        assert self.data_root is not None
        name, file = path.relative_to(place).as_posix(), file_of(path)
        if not file.resolve().is_relative_to(self.data_root.resolve()):
            return {"name": name, "reason": "a link that leads out of the data root"}
        below = path.relative_to(self.data_root.resolve()).as_posix()
        size: tuple[int | None, int | None] = (None, None)
        reason = None
        if path.suffix.lower() not in DICOM:
            try:
                with Image.open(file, formats=FORMATS) as opened:
                    size = opened.size
            except Exception:  # whatever a decoder stumbles over
                reason = "not an image, whatever its name says"
        return {
            "name": name,
            "file": BELOW_ROOT + below,
            "width": size[0],
            "height": size[1],
            "reason": reason,
        }

    def create_from_files(self, described: str, files: Sequence[tuple[str, str, int]]) -> int:
        """Images that are kept elsewhere in the workspace: name, place, label of each."""
        return self._create_of(
            described, [{"name": name, "file": file, "label": label} for name, file, label in files]
        )

    def _create_of(self, described: str, rows: list[dict[str, Any]]) -> int:
        """A set of images that are there already, all at once; their names differ."""
        created = self.create(described)
        columns = ("name", "file", "width", "height", "label", "reason")
        empty = {"file": None, "width": None, "height": None, "label": 0, "reason": None}
        with self.database.opened() as connection:
            connection.executemany(
                f"insert into set_images (set_id, number, {', '.join(columns)}) "
                f"values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (created, number, *((empty | row)[name] for name in columns))
                    for number, row in enumerate(rows)
                ),
            )
        return created

    def add(self, set_id: int, name: str, content: bytes, label: int) -> dict[str, Any]:
        """Keep an image that was sent, or the reason why not."""
        self._check(set_id)
        row: dict[str, Any] = {"name": _shown(name), "label": label}
        try:
            image = decode_image(io.BytesIO(content), "it", self.max_pixels, FORMATS)
        except UnreadableImage as error:
            named_so = Path(row["name"]).suffix.lower() in SUFFIXES
            reason = str(error).removeprefix("it: ") if named_so else "not an image"
            return self._insert(set_id, row | {"reason": reason})
        row |= {
            "digest": hashlib.sha256(content).hexdigest(),
            "width": image.width,
            "height": image.height,
            "thumbnail": jpeg(image, GRID),
        }
        if twin := self._twin(set_id, row["digest"]):
            return self._insert(set_id, row | {"reason": f"the same picture as {twin}"})
        kept = self._insert(set_id, row)
        place = self._folder(set_id) / f"{kept['number']:06d}{_suffix(content)}"
        try:
            with atomic(place) as part:
                part.write_bytes(content)
        except OSError as error:
            self._update(set_id, kept["number"], reason=f"can't be kept ({error.strerror})")
            raise RequestError(
                507, f"the studio can't keep the image ({error.strerror}); is its disk full?"
            ) from None
        below = place.relative_to(self.workspace.folder).as_posix()
        self._update(set_id, kept["number"], file=below)
        return kept

    def describe(self, set_id: int) -> dict[str, Any]:
        """The set and its images; those of another size than most are marked."""
        with self.database.opened() as connection:
            about = connection.execute("select * from sets where id = ?", (set_id,)).fetchone()
            images = connection.execute(
                "select number, name, width, height, label, reason from set_images "
                "where set_id = ? order by name",
                (set_id,),
            ).fetchall()
        if about is None:
            raise _missing(set_id)
        sizes = Counter(
            (row["width"], row["height"])
            for row in images
            if row["reason"] is None and row["width"]
        )
        usual = sizes.most_common(1)[0][0] if sizes else None
        return {
            "id": set_id,
            "described": about["described"],
            "usual_size": usual,
            "images": [
                {**dict(row), "other_size": bool(usual and _size(row) not in (usual, None))}
                for row in images
            ],
        }

    def thumbnail(self, set_id: int, number: int) -> bytes:
        """Made when it is first asked for, of images that were not dropped here."""
        with self.database.opened() as connection:
            row = connection.execute(
                "select thumbnail, file from set_images where set_id = ? and number = ?",
                (set_id, number),
            ).fetchone()
        if row is None or (row["thumbnail"] is None and row["file"] is None):
            raise RequestError(404, "there is no picture of this image")
        if row["thumbnail"] is not None:
            return bytes(row["thumbnail"])
        try:
            image = read_image(self.place(row["file"]))
        except (UserError, OSError) as error:
            raise RequestError(404, f"there is no picture of this image ({error})") from None
        made = jpeg(image, GRID)
        self._update(set_id, number, thumbnail=made)
        return made

    def samples(self, set_id: int, excluded: Sequence[int] = ()) -> list[Sample]:
        """The images of a set, without those that were left out: by name, so that a training does
        not depend on which of them came first.
        """
        with self.database.opened() as connection:
            rows = connection.execute(
                "select number, name, file, label from set_images "
                "where set_id = ? and reason is null and file is not null order by name",
                (set_id,),
            ).fetchall()
        return [
            Sample(
                row["name"],
                self.place(row["file"]),
                DEFECT if row["label"] else NORMAL,
                row["label"],
            )
            for row in rows
            if row["number"] not in excluded
        ]

    def numbers(self, set_id: int) -> dict[str, int]:
        """The number of each image, by its name."""
        with self.database.opened() as connection:
            rows = connection.execute(
                "select name, number from set_images where set_id = ?", (set_id,)
            ).fetchall()
        return {row["name"]: row["number"] for row in rows}

    def delete(self, set_id: int) -> None:
        """Forget a set, and delete what was dropped for it; folders of others stay."""
        self._check(set_id)
        with self.database.opened() as connection:
            connection.execute("delete from sets where id = ?", (set_id,))
        shutil.rmtree(self.workspace.images / str(set_id), ignore_errors=True)

    def place(self, file: str) -> Path:
        """Where an image is; never outside of the workspace or the data root."""
        if not file.startswith(BELOW_ROOT):
            return within(self.workspace.folder, file)
        if self.data_root is None:
            raise UserError(
                "the images lie below a data root, and the studio was started without one; start "
                "it with --data-root FOLDER"
            )
        return within(self.data_root, file.removeprefix(BELOW_ROOT))

    def _folder(self, set_id: int) -> Path:
        return make_folder(self.workspace.images / str(int(set_id)))

    def exists(self, set_id: int) -> bool:
        with self.database.opened() as connection:
            found = connection.execute("select 1 from sets where id = ?", (set_id,)).fetchone()
        return found is not None

    def _check(self, set_id: int) -> None:
        if not self.exists(set_id):
            raise _missing(set_id)
        with self.database.opened() as connection:
            (count,) = connection.execute(
                "select count(*) from set_images where set_id = ?", (set_id,)
            ).fetchone()
        if count >= MOST:
            raise RequestError(413, f"a set has at most {MOST:,} images")

    def _twin(self, set_id: int, digest: str) -> str | None:
        with self.database.opened() as connection:
            row = connection.execute(
                "select name from set_images where set_id = ? and digest = ? and reason is null",
                (set_id, digest),
            ).fetchone()
        return row and str(row["name"])

    def _insert(self, set_id: int, row: dict[str, Any]) -> dict[str, Any]:
        """Add a row under the next number, and under a name that no other image has."""
        columns, wanted, attempt = list(row), row["name"], 1
        statement = (
            f"insert into set_images (set_id, number, {', '.join(columns)}) "
            f"select ?, coalesce(max(number) + 1, 0), {', '.join('?' * len(columns))} "
            f"from set_images where set_id = ? returning number"
        )
        while True:
            try:
                with self.database.opened() as connection:
                    (number,) = connection.execute(
                        statement, (set_id, *row.values(), set_id)
                    ).fetchone()
                break
            except sqlite3.IntegrityError:
                attempt += 1
                if attempt > MOST:
                    raise
                row = row | {"name": f"{wanted} ({attempt})"}
        told = {"width": None, "height": None, "label": 0, "reason": None} | row
        return {
            "number": number,
            **{name: told[name] for name in ("name", "width", "height", "label", "reason")},
        }

    def _update(self, set_id: int, number: int, **changed: Any) -> None:
        assigned = ", ".join(f"{name} = ?" for name in changed)
        with self.database.opened() as connection:
            connection.execute(
                f"update set_images set {assigned} where set_id = ? and number = ?",
                (*changed.values(), set_id, number),
            )


def _shown(name: str) -> str:
    """A name as text on one line; what a browser sends as a path stays readable."""
    return visible(name.replace("\\", "/"))[:LONGEST_NAME] or "image"


def _size(row: sqlite3.Row) -> tuple[int, int] | None:
    return (row["width"], row["height"]) if row["width"] else None


def _suffix(content: bytes) -> str:
    """By what a file is, not by what it was called."""
    with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
        return f".{(opened.format or 'png').lower()}"


def _missing(set_id: int) -> RequestError:
    return RequestError(404, f"there is no set of images {set_id}; it may have been deleted")
