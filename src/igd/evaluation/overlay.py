"""Anomaly maps over their images, on an absolute scale: what is usual on normal images stays
uncoloured, so a good part looks calm; the defect stays visible under its colour.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

AT_THRESHOLD, AT_MOST = 0.2, 0.6  # opacity
FULL = 0.75  # share of the way from the threshold to 1 at which colour is strongest
OUTLINE = (178, 24, 24)  # of what lies above the threshold
# Rows that are painted at once: of a large photograph, colours as floats would take gigabytes.
BAND = 256

Map = NDArray[np.float32]
Mask = NDArray[np.bool_]


def overlay(image: Image.Image, anomaly_map: Map, usual: float, threshold: float) -> Image.Image:
    """The image with its anomalous regions coloured: nothing up to what is usual on normal images,
    then faint yellow; an outline at the pixel threshold, which few normal images reach anywhere,
    and within it from yellow to red.
    """
    pixels = np.array(image.convert("RGB"))
    lines = outline(anomaly_map > threshold)
    for upper in range(0, len(pixels), BAND):
        rows = slice(upper, upper + BAND)
        colour, opacity = _paint(anomaly_map[rows], lines[rows], usual, threshold)
        pixels[rows] = (pixels[rows].astype(np.float64) * (1 - opacity) + colour * opacity).round()
    return Image.fromarray(pixels)


def layer(anomaly_map: Map, usual: float, threshold: float) -> Image.Image:
    """The colours of `overlay` alone, transparent where nothing is coloured: to be laid over the
    image.
    """
    colour, opacity = _paint(anomaly_map, outline(anomaly_map > threshold), usual, threshold)
    return Image.fromarray(np.concatenate([colour, 255 * opacity], axis=2).round().astype(np.uint8))


def as_grey16(anomaly_map: Map) -> Image.Image:
    """The map itself as a 16-bit grey image in which 0..65535 means 0..1."""
    return Image.fromarray((anomaly_map.clip(0, 1) * 65535).round().astype(np.uint16))


def outline(mask: Mask) -> Mask:
    """The pixels of a mask (h, w) at its border, a line as wide as one pixel in 200 of the
    image.
    """
    inner, width = mask, max(1, round(max(mask.shape) / 200))
    for _ in range(width):
        padded = np.pad(inner, 1, constant_values=True)  # the image's own edge is no border
        inner = inner & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inner


def _paint(
    anomaly_map: Map, lines: Mask, usual: float, threshold: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Colour (h, w, 3) in 0..255 and opacity (h, w, 1) in 0..1 of each pixel."""
    below = np.clip((anomaly_map - usual) / max(threshold - usual, 1e-6), 0, 1)[:, :, None]
    reach = max(FULL * (1 - threshold), 1e-6)
    above = np.clip((anomaly_map - threshold) / reach, 0, 1)[:, :, None]
    colour = np.concatenate(
        [np.full_like(above, 255), 220 * (1 - above), np.zeros_like(above)], axis=2
    )
    opacity = AT_THRESHOLD * below + (AT_MOST - AT_THRESHOLD) * above
    colour[lines], opacity[lines] = OUTLINE, 1
    return colour, opacity
