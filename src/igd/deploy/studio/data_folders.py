"""Folders of images that are on the server's disk already: those below --data-root, and nothing
outside of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from igd.data.decoding import SUFFIXES
from igd.deploy.server.http_errors import RequestError
from igd.deploy.studio.workspace import within

MOST = 500  # folders of one that are listed


def list_folder(root: Path | None, below: str) -> dict[str, Any]:
    """The folders in a folder, and how many images lie directly in it."""
    place = data_folder(root, below)
    assert root is not None
    try:
        children = sorted(place.iterdir())
    except OSError as error:
        raise RequestError(404, f"the folder can't be read ({error.strerror})") from None
    folders = [
        child.name
        for child in children
        if not child.name.startswith(".") and _is_inside(root, child)
    ]
    images = sum(child.suffix.lower() in SUFFIXES and child.is_file() for child in children)
    return {
        "path": place.relative_to(root.resolve()).as_posix().removeprefix("."),
        "folders": folders[:MOST],
        "images": images,
    }


def data_folder(root: Path | None, below: str) -> Path:
    """A folder below the data root."""
    if root is None:
        raise RequestError(
            403, "this studio reads no folders of its machine; start it with --data-root FOLDER"
        )
    place = within(root, below)
    if not _is_folder(place):
        raise RequestError(404, "there is no such folder below the data root")
    return place


def _is_inside(root: Path, child: Path) -> bool:
    try:
        return child.is_dir() and child.resolve().is_relative_to(root.resolve())
    except OSError:
        return False


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except OSError:  # a name that is too long
        return False
