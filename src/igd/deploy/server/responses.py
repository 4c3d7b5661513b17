"""Predictions as API responses: verdicts at the accepted rate, regions, and maps as PNG."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.roi import HALF
from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.schemas import (
    ImageResponse,
    MapKind,
    ModelResponse,
    PoseResponse,
    RegionResponse,
    RoiResponse,
)
from igd.errors import UserError
from igd.evaluation.overlay import as_grey16, layer, overlay
from igd.inference.conformal import smallest_rate, threshold
from igd.inference.predictor import Prediction, Predictor
from igd.inference.regions import rare_regions

SCREEN = 1024  # pixels of a layer's longer side; it is made to be looked at, not measured


def model_response(name: str, predictor: Predictor, drift: str | None) -> ModelResponse:
    count, roi = len(predictor.calibration_.scores), predictor.geometry_.roi
    return ModelResponse(
        name=name,
        side=predictor.geometry_.side,
        shape=list(predictor.geometry_.shape),
        tile=predictor.tiling_.side if predictor.tiling_ else None,
        channels=predictor.channels_,
        calibration_images=count,
        max_false_alarms=predictor.false_alarm_rate_,
        lowest_rate=smallest_rate(count),
        threshold=predictor.threshold_,
        roi=None if roi is None else RoiResponse(**roi.described()),
        drift=drift,
    )


def accepted_rate(predictor: Predictor, asked: float | None) -> float:
    """The rate that a request asks for, where the calibration allows it, or the model's own."""
    if asked is None:
        return predictor.false_alarm_rate_
    try:
        return predictor.calibration_.at_rate(asked).false_alarm_rate
    except UserError as error:
        raise RequestError(422, f"max_false_alarms: {error}") from None


def image_response(
    predictor: Predictor, prediction: Prediction, rate: float, kind: MapKind | None
) -> ImageResponse:
    calibration = predictor.calibration_
    limit = threshold(calibration.scores, rate)
    located = rare_regions(prediction.map, threshold(calibration.peaks, rate), calibration.peaks)
    (height, width), pose = prediction.map.shape, prediction.pose
    return ImageResponse(
        name=prediction.name,
        score=prediction.score,
        p_value=prediction.p_value,
        is_anomalous=prediction.score > limit,
        threshold=limit,
        width=width,
        height=height,
        regions=[RegionResponse(**each) for each in located],
        alignment=pose and PoseResponse(**pose._asdict()),
        map=base64.b64encode(map_png(predictor, prediction, rate, kind)).decode() if kind else None,
    )


def map_png(predictor: Predictor, prediction: Prediction, rate: float, kind: MapKind) -> bytes:
    """The map of an image as a PNG, in the colours of the accepted rate; `overlay` needs a
    prediction that kept its image.
    """
    colours = predictor.background_level_, threshold(predictor.calibration_.peaks, rate)
    if kind == "png16":
        return _png(as_grey16(prediction.map))
    if kind == "layer":
        height, width = prediction.map.shape
        outside = predictor.geometry_.outside(width, height, prediction.pose)
        if outside is not None:
            outside = _for_screens(outside.astype(np.float32)) > HALF
        return _png(layer(_for_screens(prediction.map), *colours, outside))
    assert prediction.image is not None
    outside = predictor.geometry_.outside(*prediction.image.size, prediction.pose)
    return _png(overlay(prediction.image, prediction.map, *colours, outside))


def _for_screens(anomaly_map: NDArray[np.float32]) -> NDArray[np.float32]:
    small = Image.fromarray(anomaly_map)
    small.thumbnail((SCREEN, SCREEN), Image.Resampling.BILINEAR)
    return np.asarray(small)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)  # speed: the answer is looked at once
    return buffer.getvalue()
