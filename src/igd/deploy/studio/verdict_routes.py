"""Inspecting over HTTP, and the history of it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel, Field

from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.responses import accepted_rate, image_response
from igd.deploy.server.routes import BODY, TOKEN, admitted_uploads, hear_out, in_time
from igd.deploy.studio.database import Number
from igd.deploy.studio.outcomes import outcome_of
from igd.deploy.studio.pictures import CARD, jpeg
from igd.deploy.studio.studio import Studio, studio_of
from igd.deploy.studio.verdicts import Filter, Truth, version_of
from igd.inference.predictor import Prediction, Predictor

router = APIRouter(dependencies=[TOKEN])
Keep = Literal["all", "alarms"]
LONGEST_NOTE = 1000


class PersonsVerdict(BaseModel):
    """What a person says that an image is; null takes it back."""

    truth: Truth | None = None
    note: str = Field("", max_length=LONGEST_NOTE)


def asked_filter(
    model: str | None = None,
    alarms: bool = False,
    since: Annotated[str | None, Query(max_length=40, description="a time in UTC")] = None,
    until: Annotated[str | None, Query(max_length=40)] = None,
    text: Annotated[str | None, Query(max_length=200, description="in name or note")] = None,
    before: Number | None = None,
    after: Number | None = None,
) -> Filter:
    return Filter(model, alarms, since, until, text, before, after)


Asked = Annotated[Filter, Depends(asked_filter)]


@router.post(
    "/v1/models/{name}/inspect",
    openapi_extra={"requestBody": BODY},
    summary="Score images, and keep the verdicts",
)
async def inspect(
    request: Request,
    name: str,
    keep: Annotated[Keep, Query(description="which verdicts go into the history")] = "all",
    max_false_alarms: Annotated[float | None, Query(gt=0, lt=1)] = None,
) -> dict[str, Any]:
    """As `score`, with the map as a layer and what it means for a person."""
    studio = studio_of(request)
    service = studio.service
    try:
        predictor = service.predictor(name)
        rate = accepted_rate(predictor, max_false_alarms)
        with service.admission.request() as ticket:
            uploads = await admitted_uploads(request, service, ticket)
            contents = await service.in_thread(lambda: [each.file.read() for each in uploads])
            for upload in uploads:
                upload.file.seek(0)
            scoring = service.score(name, predictor, uploads, True)
            predictions = await in_time(service, scoring, 504)
            told = (
                service.in_thread(partial(_told, studio, name, predictor, rate, keep, *each))
                for each in zip(predictions, contents, strict=True)
            )
            return {
                "model": name,
                "max_false_alarms": rate,
                "calibration_images": len(predictor.calibration_.scores),
                "images": await asyncio.gather(*told),
            }
    except RequestError as error:
        await hear_out(request, service, error)
        raise


def _told(
    studio: Studio,
    model: str,
    predictor: Predictor,
    rate: float,
    keep: Keep,
    prediction: Prediction,
    content: bytes,
) -> dict[str, Any]:
    """A verdict in all its words; kept, where that was asked."""
    said = image_response(predictor, prediction, rate, "layer")
    outcome = outcome_of(prediction, said.is_anomalous, predictor.calibration_, rate)
    number = None
    if keep == "all" or said.is_anomalous:
        assert prediction.image is not None
        number = studio.verdicts.add(
            model,
            version_of(predictor),
            rate,
            said,
            outcome,
            prediction.mismatches,
            jpeg(prediction.image, CARD),
            content,
        )
    return {
        **said.model_dump(),
        "id": number,
        "outcome": outcome,
        "remarks": prediction.mismatches,
    }


@router.get("/v1/verdicts", summary="The history, the newest first")
def find(request: Request, asked: Asked, most: Annotated[int, Query(ge=1)] = 50) -> dict[str, Any]:
    return studio_of(request).verdicts.find(asked, most)


@router.get("/v1/verdicts.csv", summary="The history as a table")
def table(request: Request, asked: Asked) -> Response:
    return StreamingResponse(
        studio_of(request).verdicts.table(asked),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="verdicts.csv"'},
    )


@router.get("/v1/verdicts/{number}", summary="One verdict")
def get(request: Request, number: Number) -> dict[str, Any]:
    return studio_of(request).verdicts.get(number)


@router.patch("/v1/verdicts/{number}", summary="Say what an image really is")
def label(request: Request, number: Number, said: PersonsVerdict) -> dict[str, Any]:
    return studio_of(request).verdicts.label(number, said.truth, said.note)


@router.get("/v1/verdicts/{number}/image", summary="The image, as it was sent")
def image(request: Request, number: Number) -> Response:
    path = studio_of(request).verdicts.image_file(number)
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


@router.get("/v1/verdicts/{number}/{kind}", summary="A small picture of it, or its map")
def picture(request: Request, number: Number, kind: Literal["thumbnail", "layer"]) -> Response:
    media = {"thumbnail": "image/jpeg", "layer": "image/png"}[kind]
    return Response(studio_of(request).verdicts.picture(number, kind), media_type=media)
