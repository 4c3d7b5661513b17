"""Heat maps on an absolute scale: what is usual on normal images stays uncoloured, so a good part looks calm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CALM, FULL = 0.7, 2.0  # in units of the pixel threshold: colour begins, colour is complete
OPACITY = 0.75


def overlay(image: Image.Image, heat: NDArray[np.float32], pixel_threshold: float) -> Image.Image:
    """The image with its anomalous regions coloured, from yellow at the threshold to red well above it."""
    strength = np.clip((heat / max(pixel_threshold, 1e-12) - CALM) / (FULL - CALM), 0, 1)[:, :, None]
    colour = np.concatenate([np.full_like(strength, 255), 220 * (1 - strength), np.zeros_like(strength)], axis=2)
    opacity = OPACITY * np.minimum(1, 3 * strength)
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64)
    return Image.fromarray((pixels * (1 - opacity) + colour * opacity).round().astype(np.uint8))
