"""Heat maps on an absolute scale: what is usual on normal images stays uncoloured, so a good part looks calm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

OPACITY = 0.75


def overlay(image: Image.Image, heat: NDArray[np.float32], usual: float, threshold: float) -> Image.Image:
    """The image with its anomalous regions coloured: nothing up to what is usual on normal images, then yellow, and red
    from the pixel threshold on, which few normal images reach anywhere.
    """
    strength = np.clip((heat - usual) / max(threshold - usual, 1e-6), 0, 1)[:, :, None]
    colour = np.concatenate([np.full_like(strength, 255), 220 * (1 - strength), np.zeros_like(strength)], axis=2)
    opacity = OPACITY * np.minimum(1, 3 * strength)
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64)
    return Image.fromarray((pixels * (1 - opacity) + colour * opacity).round().astype(np.uint8))
