"""Small clips that the tests write, with the extra that reads them, and TIFFs of several pages."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def write_clip(path: Path, frames: np.ndarray, codec: str = "mpeg4") -> Path:
    """Frames (n, h, w[, 3]) as a clip of ten a second."""
    av = pytest.importorskip("av", reason="clips need the extra 'video'")
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        stream.bit_rate = 4_000_000
        colour = frames if frames.ndim == 4 else np.repeat(frames[..., None], 3, axis=3)
        for each in colour:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(each, format="rgb24")))
        container.mux(stream.encode())
    return path


def write_stack(path: Path, pages: Iterable[np.ndarray], **saved: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = (Image.fromarray(page) for page in pages)
    first.save(path, save_all=True, append_images=others, **saved)
    return path
