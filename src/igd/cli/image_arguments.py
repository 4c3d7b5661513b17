"""Images as people name them on a command line: files, folders, quoted patterns, a list on standard
input; and a word where model and images were swapped.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from igd.errors import UserError

Place = str | Path  # an address such as s3://bucket/parts is no path
MODELS = (".igd", ".onnx")
FROM_INPUT = "-"  # paths come on standard input, a line each


def place(given: str) -> Place:
    """An argument that names images: an address as it is, anything else as a path."""
    return given if "://" in given else Path(given)


def image_paths(given: Sequence[Place]) -> list[Place]:
    """The files, folders and addresses that arguments name; a pattern stands for what it
    matches.
    """
    return [path for each in given for path in _paths(str(each))]


def _paths(given: str) -> list[Place]:
    if given == FROM_INPUT:
        return _from_input()
    if "://" in given:
        return [given]
    if not os.path.lexists(given) and glob.has_magic(given):
        found = sorted(glob.glob(given, recursive=True))
        if not found:
            raise UserError(f"{given}: no file matches this pattern")
        return [Path(each) for each in found]
    return [Path(given)]


def _from_input() -> list[Place]:
    """Paths on standard input, a line each or, as `find -print0` writes them, between zeros."""
    text = os.fsdecode(sys.stdin.buffer.read())
    listed = text.split("\0") if "\0" in text else text.splitlines()
    found = [place(line) for line in listed if line.strip()]
    if not found:
        raise UserError("standard input: no paths on it; write one a line, or name files instead")
    return found


def check_order(model: Path, images: Sequence[Place], command: str) -> None:
    """Refuse images in the model's place, and a model among the images."""
    models = [path for path in images if Path(path).suffix.lower() in MODELS]
    if not models:
        if model.is_dir():
            raise UserError(
                f"{model}: is a folder, and a model file comes first: igd {command} parts.igd "
                f"{model}"
            )
        return
    if model.suffix.lower() not in MODELS:
        kind = "a folder" if model.is_dir() else "no model"
        raise UserError(
            f"{models[0]} is a model and {model} {kind}; the model comes first: igd {command} "
            f"{models[0]} {model}"
        )
    raise UserError(f"{models[0]}: is a model, not an image; igd {command} takes one model")


def check_out(out: Path, images: Sequence[Place]) -> None:
    """Refuse a folder of results that holds the images: all of them would be left out as results of
    an earlier call. What a pattern matches beside other images may be such results.
    """
    from igd.evaluation.results import ORIGIN

    target = out.resolve()
    paths = [each.resolve() for each in images if isinstance(each, Path)]
    held = [path for path in paths if target in (path, *path.parents)]
    if held and (len(held) == len(images) or not (out / ORIGIN).exists()):
        raise UserError(f"{out}: holds the images; choose a folder beside them")


def named_images(given: Sequence[Place], out: Path | None, every: int = 1) -> dict[Place, str]:
    """The images of files, folders and addresses, one in `every` frames of clips, without earlier
    results among them, each with the name of its anomaly map: its path below the folder that holds
    all of them.
    """
    from igd.data.decoding import find_frames
    from igd.data.remote import find_remote_images

    addresses = [each for each in given if isinstance(each, str)]
    paths = [each for each in given if isinstance(each, Path)]
    if addresses and paths:
        raise UserError(
            f"{addresses[0]} is an address and {paths[0]} a path; predict one kind at a time"
        )
    if addresses:
        # What another machine calls its files leads nowhere but into the folder of results.
        listed = [found for each in addresses for found in find_remote_images(each)]
        return {each: os.path.normpath(f"/{each.partition('://')[2]}")[1:] for each in listed}
    found = dict.fromkeys(
        path
        for each in paths
        for path in find_frames(each, every)
        if out is None or out.resolve() not in path.resolve().parents
    )
    folders = [(each if each.is_dir() else each.parent).resolve() for each in paths]
    try:
        common = Path(os.path.commonpath(folders))
    except ValueError:  # on several drives
        common = Path("/")
    # A link keeps its own name: several may lead to one image.
    names = (os.path.relpath(path.parent.resolve() / path.name, common) for path in found)
    return dict(zip(found, names, strict=True))
