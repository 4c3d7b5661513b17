"""What the API answers with: the fields of every JSON response, as OpenAPI describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

MapKind = Literal["overlay", "layer", "png16"]


class RegionResponse(BaseModel):
    """A box around an area of the map that is rarer than the accepted rate, in pixels of the
    image.
    """

    x: int
    y: int
    width: int
    height: int
    area: int = Field(description="pixels of it that are above the pixel threshold")
    peak: float = Field(description="highest value of the map in it")
    p_value: float = Field(
        description="share of normal images whose maps have such a peak anywhere"
    )


class PoseResponse(BaseModel):
    """How far a part lies from its usual place."""

    x: float = Field(description="pixels to the right")
    y: float = Field(description="pixels down")
    angle: float = Field(description="degrees clockwise")


class ImageResponse(BaseModel):
    """What the model says about one image."""

    name: str
    score: float = Field(description="in [0, 1], grows with abnormality")
    p_value: float = Field(description="share of normal images that look at least as anomalous")
    is_anomalous: bool = Field(
        description="at the accepted rate of false alarms: the score is above the threshold"
    )
    threshold: float
    width: int
    height: int
    regions: list[RegionResponse] = Field(
        description="where the image deviates, the largest first, at most 20"
    )
    alignment: PoseResponse | None = Field(
        None, description="where the part lies, of a model that aligns images"
    )
    map: str | None = Field(None, description="the PNG that was asked for, base64")


class ScoreResponse(BaseModel):
    model: str
    max_false_alarms: float = Field(description="the rate that the verdicts stand for")
    images: list[ImageResponse]


class RoiResponse(BaseModel):
    """The part of an image that a model reads."""

    frame: list[int] = Field(description="width and height of the images that it was given for")
    box: list[int] = Field(description="x, y, width and height in such an image")
    share: float = Field(description="of the box that counts; less than 1 where there is a mask")


class ModelResponse(BaseModel):
    """What there is to know about a model before asking it."""

    name: str
    side: int = Field(description="of the square that has as many pixels as the model reads")
    shape: list[int] = Field(description="rows and columns of what the model reads")
    tile: int | None = Field(
        None, description="side of the tiles that images are cut into, in pixels; null: none"
    )
    channels: int = Field(description="1: grey, 3: colour")
    calibration_images: int
    max_false_alarms: float = Field(
        description="the accepted rate of false alarms, unless a request asks for another"
    )
    lowest_rate: float = Field(
        description="the lowest rate that the calibration images can promise"
    )
    threshold: float
    roi: RoiResponse | None = Field(None, description="its region of interest; null: the image")
    drift: str | None = Field(
        None, description="since incoming images no longer look like the calibration ones: why"
    )


class ModelList(BaseModel):
    models: list[ModelResponse]
    max_bytes: int = Field(description="of a request's body")
    max_pixels: int = Field(description="of an image")


class StateResponse(BaseModel):
    status: Literal["alive", "loading", "ready", "draining"]


class ErrorResponse(BaseModel):
    """Why a request was refused, and what to do."""

    detail: str
