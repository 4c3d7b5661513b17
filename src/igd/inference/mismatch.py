"""How an image differs from those a model learnt from, in words that fit one image or many."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeGuard

from PIL import Image

from igd.data.alignment import Pose, is_at_the_limit
from igd.data.decoding import MODE, PAGES, TRANSPARENT
from igd.data.geometry import Geometry
from igd.data.roi import Roi, same_aspect
from igd.errors import UserError

GREY_MODES = ("1", "L", "LA", "La", "F")
OF_ANOTHER, SIZE = "of another", "size"
TRANSPARENCY = "partly transparent, which is ignored"
TOO_FAR = "shifted or turned as far as can be aligned, or further"
SEVERAL_PAGES = "of several pages or frames, of which the first is read"


def colour_mode(mode: str) -> str:
    """Whether an image of a mode, as Pillow calls it, is grey or in colour."""
    return "grey" if mode in GREY_MODES or mode.startswith("I") else "in colour"


def record(sizes: list[tuple[int, int]], modes: list[str]) -> dict[str, Any]:
    """What a model keeps about the images it learnt from; None where they differ."""
    colours, shapes = {colour_mode(mode) for mode in modes}, set(sizes)
    return {
        "image_size": [*shapes.pop()] if len(shapes) == 1 else None,
        "image_mode": colours.pop() if len(colours) == 1 else None,
    }


def mismatches(
    image: Image.Image,
    provenance: dict[str, Any],
    geometry: Geometry | None = None,
    pose: Pose | None = None,
) -> tuple[str, ...]:
    """What a decoded image is that those in the model's record were not, or what of it is not
    read.
    """
    found = [
        *_other_mode(image, provenance),
        *(_other_frame(image.size, geometry) or _other_size(image, provenance)),
    ]
    if pose and is_at_the_limit(pose, image.size):
        found.append(TOO_FAR)
    if image.info.get(TRANSPARENT):
        found.append(TRANSPARENCY)
    if image.info.get(PAGES, 1) > 1:
        found.append(SEVERAL_PAGES)
    return tuple(found)


def is_another_size(mismatch: str) -> bool:
    """Whether an image differs in its size alone: it shows the same, in more or fewer pixels."""
    return mismatch.startswith(f"{OF_ANOTHER} {SIZE} ")


def check_mismatch(name: str, found: tuple[str, ...]) -> None:
    """Refuse an image that differs from those a model learnt from."""
    if found:
        raise UserError(f"{name}: is {found[0]} (--strict)")


def counted_lines(found: Counter[str], images: int) -> list[str]:
    """One line for each kind of mismatch, whatever the number of images."""
    return [f"{count} of {images} images are {what}" for what, count in found.items()]


def _other_mode(image: Image.Image, provenance: dict[str, Any]) -> list[str]:
    learnt = provenance.get("image_mode")
    mode = colour_mode(str(image.info.get(MODE, image.mode)))
    if learnt is None or mode == learnt:
        return []
    return [f"{mode}, and the model learnt from images that are {learnt}"]


def _other_frame(size: tuple[int, int], geometry: Geometry | None) -> list[str]:
    roi = geometry and geometry.roi
    return [scaled_to(roi)] if roi and size != roi.frame else []


def scaled_to(roi: Roi) -> str:
    """What is said of an image of another size than the frame."""
    width, height = roi.frame
    return f"of another size than {width}x{height}, so that the region of interest is scaled"


def _other_size(image: Image.Image, provenance: dict[str, Any]) -> list[str]:
    learnt, told = provenance.get("image_size"), SIZE
    if not _is_size(learnt) or [*image.size] == learnt:
        return []
    width, height = learnt
    if not same_aspect(image.size, (width, height)):
        told = "aspect ratio"
    return [f"{OF_ANOTHER} {told} than the {width}x{height} that the model learnt from"]


def _is_size(learnt: Any) -> TypeGuard[list[int]]:
    """A model file may say anything."""
    return (
        isinstance(learnt, list)
        and len(learnt) == 2
        and all(isinstance(side, int) and side > 0 for side in learnt)
    )
