"""Heat maps on an absolute scale: what is usual on normal images stays uncoloured, so a good part looks calm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

OPACITY = 0.75
BAND = 256  # rows that are painted at once: of a large photograph, colours as floats would take gigabytes


def overlay(image: Image.Image, heat: NDArray[np.float32], usual: float, threshold: float) -> Image.Image:
    """The image with its anomalous regions coloured: nothing up to what is usual on normal images, then yellow, and red
    from the pixel threshold on, which few normal images reach anywhere.
    """
    pixels = np.array(image.convert("RGB"))
    for upper in range(0, len(pixels), BAND):
        rows = slice(upper, upper + BAND)
        colour, opacity = _paint(heat[rows], usual, threshold)
        pixels[rows] = (pixels[rows].astype(np.float64) * (1 - opacity) + colour * opacity).round()
    return Image.fromarray(pixels)


def layer(heat: NDArray[np.float32], usual: float, threshold: float) -> Image.Image:
    """The colours of `overlay` alone, transparent where nothing is coloured: to be laid over the image."""
    colour, opacity = _paint(heat, usual, threshold)
    return Image.fromarray(np.concatenate([colour, 255 * opacity], axis=2).round().astype(np.uint8))


def as_grey16(heat: NDArray[np.float32]) -> Image.Image:
    """The map itself as a 16-bit grey image in which 0..65535 means 0..1."""
    return Image.fromarray((heat.clip(0, 1) * 65535).round().astype(np.uint16))


def _paint(heat: NDArray[np.float32], usual: float, threshold: float) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Colour (h, w, 3) in 0..255 and opacity (h, w, 1) in 0..1 of each pixel."""
    strength = np.clip((heat - usual) / max(threshold - usual, 1e-6), 0, 1)[:, :, None]
    colour = np.concatenate([np.full_like(strength, 255), 220 * (1 - strength), np.zeros_like(strength)], axis=2)
    return colour, OPACITY * np.minimum(1, 3 * strength)
