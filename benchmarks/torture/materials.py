"""Tiny models and images that everything is tried on: they cost milliseconds, and the code that
reads them is the code that reads large ones.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 40
TRAINING = ("--pretrain", "scratch", "--combination", "sum", "--steps", "20", "--width", "2")


@dataclass(frozen=True)
class Materials:
    """Where they lie."""

    folder: Path
    igd: Path  # trained from scratch, half a megabyte
    onnx: Path  # the same, exported
    images: Path  # a folder of normal images


def stripes(count: int, side: int = SIDE, seed: int = 0) -> NDArray[np.uint8]:
    """Colour images of stripes of some phase, with noise."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 8, (count, 1, 1, 1))
    wave = 128 + 80 * np.sin((np.arange(side)[None, None, :, None] + phase) * 2 * np.pi / 8)
    noise = rng.normal(0, 6, (count, side, side, 3))
    return (wave + noise).clip(0, 255).astype(np.uint8)


def make_images(folder: Path, count: int, seed: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(stripes(count, seed=seed)):
        Image.fromarray(image).save(folder / f"{number:03d}.png")
    return folder


def make_materials(folder: Path, *, exported: bool) -> Materials:
    """Make what is missing of them; exporting takes the longest."""
    from igd import IGD
    from igd.deploy.export import export

    made = Materials(folder, folder / "tiny.igd", folder / "tiny.onnx", folder / "images")
    if not made.images.is_dir():
        make_images(made.images, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not made.igd.is_file():
            settings: dict[str, Any] = {"pretrain": "scratch", "combination": "sum", "width": 2}
            IGD(**settings, steps=20, image_size=32, seed=1).fit(made.images).save(made.igd)
        if exported and not made.onnx.is_file():
            export(IGD.load(made.igd), made.onnx)
    return made


def encoded() -> list[tuple[str, bytes]]:
    """Undamaged images in every format, and in the variants whose decoders differ: suffix and
    contents.
    """
    colour, *_ = stripes(1, seed=7)
    deep = Image.fromarray(colour[..., 0].astype(np.uint16) * 257)
    photo, exif = Image.fromarray(colour), Image.Exif()
    exif[0x0112] = 6  # to be turned
    listed: list[tuple[str, Image.Image, dict[str, Any]]] = [
        ("png", photo, {}),
        ("png", photo.convert("L"), {}),
        ("png", photo.quantize(64), {}),
        ("png", deep, {}),
        ("jpg", photo, {"quality": 90}),
        ("jpg", photo, {"quality": 75, "progressive": True}),
        ("jpg", photo, {"quality": 85, "exif": exif}),
        ("webp", photo, {"quality": 80}),
        ("webp", photo, {"lossless": True}),
        ("tif", photo, {}),
        ("tif", photo, {"compression": "tiff_lzw"}),
        ("tif", photo, {"compression": "tiff_adobe_deflate"}),
        ("tif", deep, {}),
        ("bmp", photo, {}),
        ("bmp", photo.quantize(64), {}),
    ]
    made = []
    for suffix, image, options in listed:
        buffer = io.BytesIO()
        image.save(buffer, format={"jpg": "JPEG", "tif": "TIFF"}.get(suffix, suffix), **options)
        made.append((suffix, buffer.getvalue()))
    return made
