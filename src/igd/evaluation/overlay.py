"""Anomaly maps over their images, on an absolute scale: what is usual on normal images stays
uncoloured, so a good part looks calm; the defect stays visible under its colour.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.inference.regions import Mask, outlined

AT_THRESHOLD, AT_MOST = 0.2, 0.6  # opacity
FULL = 0.75  # share of the way from the threshold to 1 at which colour is strongest
YELLOW, RED = (255, 220, 0), (255, 0, 0)  # at the threshold, and where colour is strongest
OUTLINE = (178, 24, 24)  # of areas that reach above the threshold
CASING, OF_CASING = (255, 240, 200), 0.6  # beside the outline, and its opacity: for dark images
TRUTH = ((150, 210, 255), (0, 60, 180))  # by turns along the border of a ground-truth mask
DASH = 4  # line widths
# Rows that are painted at once: of a large photograph, colours as floats would take gigabytes.
BAND = 256
BESIDE, OF_BESIDE = (128, 128, 128), 0.6  # over what is outside of the region of interest

Map = NDArray[np.float32]


def overlay(
    image: Image.Image,
    anomaly_map: Map,
    usual: float,
    threshold: float,
    outside: Mask | None = None,
) -> Image.Image:
    """The image with its anomalous regions coloured: nothing up to what is usual on normal images,
    then faint yellow; from the pixel threshold on, which few normal images reach anywhere, from
    yellow to red, with an outline at half the height of each such area. What is outside of the
    region of interest is greyed.
    """
    pixels = np.array(image.convert("RGB"))
    lines, casing = _contour(outlined(anomaly_map, usual, threshold))
    for upper in range(0, len(pixels), BAND):
        rows = slice(upper, upper + BAND)
        colour, opacity = _paint(
            anomaly_map[rows],
            lines[rows],
            casing[rows],
            usual,
            threshold,
            None if outside is None else outside[rows],
        )
        pixels[rows] = (pixels[rows].astype(np.float64) * (1 - opacity) + colour * opacity).round()
    return Image.fromarray(pixels)


def coloured_map(
    anomaly_map: Map, usual: float, threshold: float, outside: Mask | None = None
) -> Image.Image:
    """The map alone in the colours of `overlay`, opaque: white up to what is usual, yellow at the
    threshold, then red. It only gets darker, so that it can be read without telling red from green.
    """
    below, above = _levels(anomaly_map, usual, threshold)
    pixels = (255 * (1 - below) + _colour(above) * below).round().astype(np.uint8)
    if outside is not None:
        pixels[outside] = BESIDE
    pixels[outline(outlined(anomaly_map, usual, threshold))] = OUTLINE
    return Image.fromarray(pixels)


def with_truth(picture: Image.Image, mask: Mask) -> Image.Image:
    """The picture with a dashed line, light and dark blue, just outside of a ground-truth
    mask: what it marks stays visible.
    """
    pixels = np.array(picture.convert("RGB"))
    y, x = np.nonzero(outline(~mask))
    # No direction of the pixel grid, nor a diagonal, runs along x + 2y: dashes go all around.
    turn = (x + 2 * y) // (DASH * _line_width(mask)) % 2
    pixels[y, x] = np.array(TRUTH, dtype=np.uint8)[turn]
    return Image.fromarray(pixels)


def layer(
    anomaly_map: Map, usual: float, threshold: float, outside: Mask | None = None
) -> Image.Image:
    """The colours of `overlay` alone, transparent where nothing is coloured: to be laid over the
    image.
    """
    contour = _contour(outlined(anomaly_map, usual, threshold))
    colour, opacity = _paint(anomaly_map, *contour, usual, threshold, outside)
    return Image.fromarray(np.concatenate([colour, 255 * opacity], axis=2).round().astype(np.uint8))


def as_grey16(anomaly_map: Map) -> Image.Image:
    """The map itself as a 16-bit grey image in which 0..65535 means 0..1."""
    return Image.fromarray((anomaly_map.clip(0, 1) * 65535).round().astype(np.uint16))


def outline(mask: Mask) -> Mask:
    """The pixels of a mask (h, w) at its border, a line as wide as one pixel in 200 of the
    image.
    """
    if not mask.any() or mask.all():  # most images: nothing has a border
        return np.zeros_like(mask)
    inner = mask
    for _ in range(_line_width(mask)):
        padded = np.pad(inner, 1, constant_values=True)  # the image's own edge is no border
        inner = inner & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inner


def _contour(mask: Mask) -> tuple[Mask, Mask]:
    """The line within the border of a mask, and a pale one without, by which it is seen on dark."""
    return outline(mask), outline(~mask)


def _line_width(mask: Mask) -> int:
    return max(1, round(int(max(mask.shape)) / 200))


def _levels(
    anomaly_map: Map, usual: float, threshold: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """How far each pixel is from what is usual to the threshold, and from there to the strongest
    colour: (h, w, 1) in 0..1.
    """
    below = np.clip((anomaly_map - usual) / max(threshold - usual, 1e-6), 0, 1)
    above = np.clip((anomaly_map - threshold) / max(FULL * (1 - threshold), 1e-6), 0, 1)
    return below[:, :, None], above[:, :, None]


def _colour(above: NDArray[np.floating]) -> NDArray[np.floating]:
    """From yellow to red, (h, w, 3) in 0..255."""
    return np.concatenate(
        [low + (high - low) * above for low, high in zip(YELLOW, RED, strict=True)], axis=2
    )


def _paint(
    anomaly_map: Map,
    lines: Mask,
    casing: Mask,
    usual: float,
    threshold: float,
    outside: Mask | None,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Colour (h, w, 3) in 0..255 and opacity (h, w, 1) in 0..1 of each pixel."""
    below, above = _levels(anomaly_map, usual, threshold)
    colour, opacity = _colour(above), AT_THRESHOLD * below + (AT_MOST - AT_THRESHOLD) * above
    if outside is not None:
        colour[outside], opacity[outside] = BESIDE, OF_BESIDE
    colour[casing], opacity[casing] = CASING, OF_CASING
    colour[lines], opacity[lines] = OUTLINE, 1
    return colour, opacity
