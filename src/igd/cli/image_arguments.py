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

MODELS = (".igd", ".onnx")
FROM_INPUT = "-"  # paths come on standard input, a line each


def image_paths(given: Sequence[str | Path]) -> list[Path]:
    """The files and folders that arguments name; a pattern stands for what it matches."""
    return [path for each in given for path in _paths(str(each))]


def _paths(given: str) -> list[Path]:
    if given == FROM_INPUT:
        return _from_input()
    if not os.path.lexists(given) and glob.has_magic(given):
        found = sorted(glob.glob(given, recursive=True))
        if not found:
            raise UserError(f"{given}: no file matches this pattern")
        return [Path(each) for each in found]
    return [Path(given)]


def _from_input() -> list[Path]:
    """Paths on standard input, a line each or, as `find -print0` writes them, between zeros."""
    text = os.fsdecode(sys.stdin.buffer.read())
    listed = text.split("\0") if "\0" in text else text.splitlines()
    found = [Path(line) for line in listed if line.strip()]
    if not found:
        raise UserError("standard input: no paths on it; write one a line, or name files instead")
    return found


def check_order(model: Path, images: Sequence[Path], command: str) -> None:
    """Refuse images in the model's place, and a model among the images."""
    models = [path for path in images if path.suffix.lower() in MODELS]
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
