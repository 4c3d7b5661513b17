"""How an image differs from those a model learnt from, in words that fit one image or many."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeGuard

from PIL import Image

from igd.data.decoding import MODE, PAGES, TRANSPARENT
from igd.errors import UserError

ASPECT = 0.02  # by which the ratio of the sides may differ
GREY_MODES = ("1", "L", "LA", "La", "F")
TRANSPARENCY = "partly transparent, which is ignored"
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


def mismatches(image: Image.Image, provenance: dict[str, Any]) -> tuple[str, ...]:
    """What a decoded image is that those in the model's record were not, or what of it is not
    read.
    """
    found = [*_other_mode(image, provenance), *_other_size(image, provenance)]
    if image.info.get(TRANSPARENT):
        found.append(TRANSPARENCY)
    if image.info.get(PAGES, 1) > 1:
        found.append(SEVERAL_PAGES)
    return tuple(found)


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


def _other_size(image: Image.Image, provenance: dict[str, Any]) -> list[str]:
    learnt, told = provenance.get("image_size"), "size"
    if not _is_size(learnt) or [*image.size] == learnt:
        return []
    width, height = learnt
    if abs(image.width * height / (image.height * width) - 1) > ASPECT:
        told = "aspect ratio"
    return [f"of another {told} than the {width}x{height} that the model learnt from"]


def _is_size(learnt: Any) -> TypeGuard[list[int]]:
    """A model file may say anything."""
    return (
        isinstance(learnt, list)
        and len(learnt) == 2
        and all(isinstance(side, int) and side > 0 for side in learnt)
    )
