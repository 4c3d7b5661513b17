"""What people say of a region of interest (boxes, mask files, arrays) as one region of a frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from igd.data.roi import MaskPixels, Roi, Size, same_aspect
from igd.data.sample import marked_pixels
from igd.errors import UserError
from igd.progress import Progress

BOX = re.compile(r"\s*[+-]?\d+\s*(,\s*[+-]?\d+\s*){3}")
SHAPE = "give x,y,width,height in pixels, or a file in which what is not black is meant"


def make_roi(roi: Any, ignore: Any, frame: Size, progress: Progress) -> Roi | None:
    """The region that `roi` marks, without what `ignore` marks, in images of this size; None where
    nothing was said.
    """
    ignored = _listed(ignore)
    if roi is None and not ignored:
        return None
    inside = np.ones(frame[::-1], dtype=bool)
    if roi is not None:
        inside = _marked(roi, "roi", frame, progress)
    for each in ignored:
        inside &= ~_marked(each, "ignore", frame, progress)
    if not inside.any():
        raise UserError(
            "nothing is left to read: ignore covers all of "
            + ("the image" if roi is None else "the region of interest")
        )
    return Roi.of(inside)


def described(given: Any) -> str | list[str] | None:
    """What was said, for a model file: a path's last part, as folders are nobody else's
    business.
    """
    if isinstance(given, list | tuple) and not _is_box(given):
        return [str(described(each)) for each in given]
    if given is None:
        return None
    if isinstance(given, np.ndarray):
        return "array"
    if _is_box(given):
        return ",".join(str(number) for number in given)
    return str(given) if BOX.fullmatch(str(given)) else Path(given).name


def _listed(ignore: Any) -> list[Any]:
    if ignore is None:
        return []
    several = isinstance(ignore, list | tuple) and not _is_box(ignore)
    return list(ignore) if several else [ignore]


def _is_box(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and len(given) == 4
        and all(isinstance(number, int | np.integer) for number in given)
    )


def _marked(given: Any, what: str, frame: Size, progress: Progress) -> MaskPixels:
    """Which pixels of the frame are meant."""
    if isinstance(given, np.ndarray):
        return _in_frame(given, f"{what}: the mask", frame, progress)
    if _is_box(given):
        return _box(list(given), what, frame)
    if not isinstance(given, str | Path):
        raise UserError(f"{what}: {given!r} is neither a box nor a mask; {SHAPE}")
    if BOX.fullmatch(str(given)):
        return _box([int(number) for number in str(given).split(",")], what, frame)
    path = Path(given)
    if not path.is_file():
        raise UserError(f"{what}: {given}: no such file; {SHAPE}")
    return _in_frame(marked_pixels(path), f"{what}: {path}", frame, progress)


def _box(numbers: list[int], what: str, frame: Size) -> MaskPixels:
    x, y, width, height = numbers
    said = f"{what}: {x},{y},{width},{height}"
    if width <= 0 or height <= 0:
        raise UserError(f"{said}: width and height must be positive; {SHAPE}")
    if x < 0 or y < 0 or x + width > frame[0] or y + height > frame[1]:
        raise UserError(
            f"{said}: reaches beyond the images, which are {frame[0]}x{frame[1]}; it goes from "
            f"{x},{y} to {x + width},{y + height}"
        )
    marked = np.zeros(frame[::-1], dtype=bool)
    marked[y : y + height, x : x + width] = True
    return marked


def _in_frame(mask: np.ndarray, named: str, frame: Size, progress: Progress) -> MaskPixels:
    """A mask at the size of the frame, which it must have the shape of."""
    if mask.ndim != 2:
        raise UserError(f"{named} has the shape {mask.shape}; give (height, width)")
    if not mask.any():
        raise UserError(f"{named} marks no pixel; what is not black is meant")
    (height, width), marked = mask.shape, mask.astype(bool)
    if (width, height) == frame:
        return marked
    if not same_aspect((width, height), frame):
        raise UserError(
            f"{named} is {width}x{height}, the images {frame[0]}x{frame[1]}; make it of their size"
        )
    progress.say(f"{named} is {width}x{height} and is scaled to {frame[0]}x{frame[1]}")
    scaled = Image.fromarray(marked).resize(frame, Image.Resampling.NEAREST)
    return np.asarray(scaled)
