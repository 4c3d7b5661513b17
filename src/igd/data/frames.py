"""Files that hold several images: the frames of a clip, the pages of a TIFF. Each is named like a
file, `clip.mp4#000123`, counted from 0, and read like one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from PIL import Image

CLIPS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm")
STACKS = (".tif", ".tiff")
NAMED = re.compile(rf"(.+(?:{'|'.join(map(re.escape, (*CLIPS, *STACKS)))}))#(\d+)", re.IGNORECASE)
NEW_SUBFILE_TYPE, REDUCED = 254, 1  # a TIFF's tag, and its bit for a smaller copy of another page


class Frame(NamedTuple):
    """A frame or a page of a file."""

    file: Path
    number: int


def frame_of(path: Path) -> Frame | None:
    """What a name with a number behind it means, unless a file has that name itself."""
    named = NAMED.fullmatch(path.name)
    if not named or path.exists():
        return None
    return Frame(path.with_name(named[1]), int(named[2]))


def file_of(path: Path) -> Path:
    """The file that an image is read from: of a frame or a page, the one that it is in."""
    frame = frame_of(path)
    return frame.file if frame else path


def is_clip(path: Path) -> bool:
    return path.suffix.lower() in CLIPS


def images_in(path: Path, every: int = 1) -> list[Path]:
    """The images of one file: itself, one in `every` frames of a clip, or all pages of a TIFF that
    are as large as its first. Where pages differ in size, only the first is an image for sure. A
    damaged clip is one image, which can't be read.
    """
    if is_clip(path):
        from igd.data.decoding import UnreadableImage
        from igd.data.formats.video import count_frames

        try:
            return [_named(path, number) for number in range(0, count_frames(path), every)]
        except UnreadableImage:
            return [path]
    if path.suffix.lower() in STACKS:
        return _pages(path) or [path]
    return [path]


def _named(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}#{number:06d}")


def _pages(path: Path) -> list[Path]:
    """Names of a TIFF's pages, or none where it is one image; decoding says what is wrong with a
    damaged one.
    """
    try:
        with Image.open(path) as opened:
            count, size, found = getattr(opened, "n_frames", 1), opened.size, []
            for number in range(count if count > 1 else 0):
                opened.seek(number)
                tags = opened.tag_v2  # type: ignore[attr-defined]
                if not int(tags.get(NEW_SUBFILE_TYPE, 0)) & REDUCED:
                    found.append((number, opened.size))
    except Exception:
        return []
    if len(found) < 2 or any(each != size for _, each in found):
        return []
    return [_named(path, number) for number, _ in found]
