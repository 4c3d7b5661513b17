"""What is said about an image and about a model, and its pictures."""

from __future__ import annotations

import base64
import io
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, Field

from igd.calibration import choose_rate, p_values, smallest_rate, threshold
from igd.deploy.regions import regions
from igd.deploy.server.refusals import Refused
from igd.errors import UserError
from igd.evaluation.overlay import as_grey16, layer, overlay
from igd.judging import Judge, Prediction

MapKind = Literal["overlay", "layer", "png16"]
SCREEN = 1024  # pixels of a layer's longer side; it is made to be looked at, not measured


class RegionAnswer(BaseModel):
    """A box around an area of the map that is rarer than the accepted rate, in pixels of the image."""

    x: int
    y: int
    width: int
    height: int
    area: int = Field(description="pixels of it that are above the pixel threshold")
    peak: float = Field(description="highest value of the map in it")
    p_value: float = Field(description="share of normal images whose maps have such a peak anywhere")


class ImageAnswer(BaseModel):
    """What the model says about one image."""

    name: str
    score: float = Field(description="in [0, 1], grows with abnormality")
    p_value: float = Field(description="share of normal images that look at least as anomalous")
    is_anomalous: bool = Field(description="at the accepted rate of false alarms: the score is above the threshold")
    threshold: float
    width: int
    height: int
    regions: list[RegionAnswer] = Field(description="where the image deviates, the largest first, at most 20")
    map: str | None = Field(None, description="the PNG that was asked for, base64")


class Scores(BaseModel):
    model: str
    max_false_alarms: float = Field(description="the rate that the verdicts stand for")
    images: list[ImageAnswer]


class ModelAnswer(BaseModel):
    """What there is to know about a model before asking it."""

    name: str
    side: int = Field(description="of the square that the model sees, in pixels")
    channels: int = Field(description="1: grey, 3: colour")
    calibration_images: int
    max_false_alarms: float = Field(description="the accepted rate of false alarms, unless a request asks for another")
    lowest_rate: float = Field(description="the lowest rate that the calibration images can promise")
    threshold: float


class Models(BaseModel):
    models: list[ModelAnswer]
    max_bytes: int = Field(description="of a request's body")
    max_pixels: int = Field(description="of an image")


class State(BaseModel):
    status: Literal["alive", "loading", "ready", "draining"]


class Problem(BaseModel):
    """Why a request was refused, and what to do."""

    detail: str


def about_model(name: str, judge: Judge) -> ModelAnswer:
    count = len(judge.calibration_scores_)
    return ModelAnswer(
        name=name,
        side=judge.geometry_.side,
        channels=judge.channels_,
        calibration_images=count,
        max_false_alarms=judge.false_alarm_rate_,
        lowest_rate=smallest_rate(count),
        threshold=judge.threshold_,
    )


def accepted_rate(judge: Judge, asked: float | None) -> float:
    """The rate that a request asks for, where the calibration allows it, or the model's own."""
    if asked is None:
        return judge.false_alarm_rate_
    try:
        return choose_rate(asked, len(judge.calibration_scores_))
    except UserError as error:
        raise Refused(422, f"max_false_alarms: {error}") from None


def about_image(judge: Judge, prediction: Prediction, rate: float, kind: MapKind | None) -> ImageAnswer:
    limit = threshold(judge.calibration_scores_, rate)
    height, width = prediction.map.shape
    return ImageAnswer(
        name=prediction.name,
        score=prediction.score,
        p_value=prediction.p_value,
        is_anomalous=prediction.score > limit,
        threshold=limit,
        width=width,
        height=height,
        regions=_regions(judge, prediction.map, threshold(judge.calibration_peaks_, rate)),
        map=base64.b64encode(picture(judge, prediction, kind)).decode() if kind else None,
    )


def picture(judge: Judge, prediction: Prediction, kind: MapKind) -> bytes:
    """The map of an image as a PNG; `overlay` needs a prediction that kept its image."""
    colours = judge.usual_heat_, judge.pixel_threshold_
    if kind == "png16":
        return _png(as_grey16(prediction.map))
    if kind == "layer":
        return _png(layer(_for_screens(prediction.map), *colours))
    assert prediction.image is not None
    return _png(overlay(prediction.image, prediction.map, *colours))


def _regions(judge: Judge, heat: NDArray[np.float32], limit: float) -> list[RegionAnswer]:
    found = regions(heat, limit)
    rarities = p_values([region.peak for region in found], judge.calibration_peaks_)
    return [RegionAnswer(**region._asdict(), p_value=float(rarity)) for region, rarity in zip(found, rarities, strict=True)]


def _for_screens(heat: NDArray[np.float32]) -> NDArray[np.float32]:
    small = Image.fromarray(heat)
    small.thumbnail((SCREEN, SCREEN), Image.Resampling.BILINEAR)
    return np.asarray(small)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)  # speed: the answer is looked at once
    return buffer.getvalue()
