"""The folder that a studio keeps everything in, and names that may be used there."""

from __future__ import annotations

import re
from pathlib import Path

from igd.data.frames import file_of
from igd.deploy.server.http_errors import RequestError
from igd.deploy.studio.database import Database
from igd.errors import UserError
from igd.files import make_folder

LONGEST_NAME = 64
# Letters and digits of any alphabet; no dot in front, no separator, nothing that a shell obeys.
NAME = re.compile(rf"\w[\w-]{{0,{LONGEST_NAME - 1}}}")
RESERVED = {"con", "prn", "aux", "nul"}  # which Windows keeps for devices


class Workspace:
    """models/ has the model files, images/ what was dropped to train with, inspected/ what was
    inspected, reports/ and checkpoints/ what jobs wrote.
    """

    def __init__(self, folder: Path) -> None:
        if folder.is_file():
            raise UserError(f"{folder}: is a file; name a folder for models and history")
        self.folder = make_folder(folder).resolve()
        self.models = make_folder(self.folder / "models")
        self.images = make_folder(self.folder / "images")
        self.inspected = make_folder(self.folder / "inspected")
        self.reports = make_folder(self.folder / "reports")
        self.checkpoints = make_folder(self.folder / "checkpoints")
        self.database = Database(self.folder / "studio.sqlite")

    def model_file(self, name: str, suffix: str = ".igd") -> Path:
        """Where a model of this name is, or is to be."""
        return self.models / f"{check_model_name(name)}{suffix}"

    def checkpoint(self, job: int) -> Path:
        """What a job that was stopped goes on from."""
        return self.checkpoints / f"{int(job)}.checkpoint"

    def report_file(self, job: int) -> Path:
        return self.reports / f"{int(job)}.html"


def check_model_name(name: str) -> str:
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise RequestError(
            422,
            f"a model can't be called {name[:LONGEST_NAME]!r}; use letters, digits, - and _, at "
            f"most {LONGEST_NAME}",
        )
    return name


def within(root: Path, below: str) -> Path:
    """The place of a relative path below a root; links that lead out of it are refused."""
    try:
        place = (root / below).resolve()
        inside = file_of(place).resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):  # a zero byte, a link to itself
        inside = False
    if not inside or Path(below).is_absolute():
        raise RequestError(403, "this lies outside of the folder that the studio may read")
    return place
