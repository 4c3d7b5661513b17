"""Small pictures for screens: what the database keeps of an image and of its anomaly map."""

from __future__ import annotations

import io

from PIL import Image

from igd.deploy.server.responses import map_png
from igd.inference.predictor import Prediction, Predictor

GRID, CARD = 160, 512  # pixels of the longer side


def jpeg(image: Image.Image, side: int) -> bytes:
    """A picture of at most this side."""
    small = image.convert("RGB")
    small.thumbnail((side, side))
    buffer = io.BytesIO()
    small.save(buffer, format="JPEG", quality=85)
    return buffer.getvalue()


def photo_and_layer(predictor: Predictor, prediction: Prediction) -> tuple[bytes, bytes]:
    """An image and the colours of its map, to be laid over it."""
    assert prediction.image is not None
    drawn = map_png(predictor, prediction, predictor.false_alarm_rate_, "layer")
    return jpeg(prediction.image, CARD), drawn
