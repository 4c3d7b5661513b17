"""The HTTP API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request, Response, Security
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer

from igd.deploy.server.admission import Ticket
from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.prometheus import CONTENT_TYPE
from igd.deploy.server.responses import accepted_rate, image_response, map_png, model_response
from igd.deploy.server.schemas import (
    ErrorResponse,
    MapKind,
    ModelList,
    ScoreResponse,
    StateResponse,
)
from igd.deploy.server.service import Service
from igd.deploy.server.uploads import Upload, discard, receive
from igd.inference.predictor import Prediction, Predictor

Result = TypeVar("Result")
router = APIRouter()
TOO_SLOW = 408

ERRORS = {
    401: "the token is missing or wrong",
    403: "the token's role may not do this, or a page of another site asked",
    404: "there is no such model",
    408: "the images came too slowly",
    413: "too many bytes, pixels or images",
    415: "not an image",
    422: "a parameter, or a body, that can't be used",
    429: "as many images are waiting as may; send again after Retry-After seconds",
    503: "the server is loading or being stopped, or its model failed",
    504: "scoring took too long",
}
BINARY = {"schema": {"type": "string", "format": "binary"}}
FILES = {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}}
MULTIPART = {"schema": {"type": "object", "required": ["images"], "properties": {"images": FILES}}}
BODY = {
    "required": True,
    "content": {
        "multipart/form-data": MULTIPART,
        "application/octet-stream": BINARY,
        "image/*": BINARY,
    },
}
# Said here, checked by the guard, before anything of a request is looked at.
TOKEN = Security(
    HTTPBearer(auto_error=False, description="where the server was started with a token")
)
# Of an image, in the headers of its picture.
HEADER_FIELDS = ("score", "p_value", "is_anomalous", "threshold")


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorResponse, "description": ERRORS[status]} for status in statuses}


@router.post(
    "/v1/models/{name}/score",
    response_model=ScoreResponse,
    responses={200: {"content": {"image/png": BINARY}}, **error_responses(*ERRORS)},
    openapi_extra={"requestBody": BODY},
    dependencies=[TOKEN],
    summary="Score images",
)
async def score(
    request: Request,
    name: str,
    max_false_alarms: Annotated[
        float | None, Query(gt=0, lt=1, description="accepted share of false alarms")
    ] = None,
    map: Annotated[
        MapKind | None, Query(description="picture of each map to send along, base64")
    ] = None,
) -> Any:
    """One or more images as multipart files, or one as the body itself. With `Accept: image/png`
    and one image, the answer is the picture that `map` names (default: overlay), and its headers
    say the rest.
    """
    service: Service = request.app.state.service
    try:
        predictor = service.predictor(name)
        rate = accepted_rate(predictor, max_false_alarms)
        with service.admission.request() as ticket:
            if _wants_picture(request):
                (prediction,) = await _predictions(
                    request, service, name, predictor, ticket, 1, map in (None, "overlay")
                )
                return await service.in_thread(
                    partial(_as_picture, predictor, prediction, rate, map or "overlay")
                )
            predictions = await _predictions(
                request, service, name, predictor, ticket, service.settings.queue, map == "overlay"
            )
            responses = (
                service.in_thread(partial(image_response, predictor, each, rate, map))
                for each in predictions
            )
            return ScoreResponse(
                model=name, max_false_alarms=rate, images=await asyncio.gather(*responses)
            )
    except RequestError as error:
        await hear_out(request, service, error)
        raise


async def hear_out(request: Request, service: Service, error: RequestError) -> None:
    """Take what a refused client is still sending, unless it was too slow already."""
    if error.status != TOO_SLOW:
        await discard(request, service.settings.max_bytes)


@router.get(
    "/v1/models",
    responses=error_responses(401, 503),
    dependencies=[TOKEN],
    summary="The models and what they promise",
)
async def models(request: Request) -> ModelList:
    service: Service = request.app.state.service
    service.check_ready()
    listed = [
        model_response(name, predictor, drift.notice)
        for name, predictor in service.predictors.items()
        if (drift := service.drift.get(name))  # else it is being removed
    ]
    return ModelList(
        models=listed, max_bytes=service.settings.max_bytes, max_pixels=service.settings.max_pixels
    )


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> StateResponse:
    return StateResponse(status="alive")


@router.get("/readyz", responses=error_responses(503), summary="Can images be sent?")
async def readyz(request: Request) -> StateResponse:
    service: Service = request.app.state.service
    service.check_ready()
    return StateResponse(status=service.state)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses=error_responses(401),
    dependencies=[TOKEN],
    summary="Metrics for Prometheus",
)
async def metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type=CONTENT_TYPE)


def _wants_picture(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return "image/png" in accepted and "application/json" not in accepted


async def _predictions(
    request: Request,
    service: Service,
    model: str,
    predictor: Predictor,
    ticket: Ticket,
    most: int,
    keep_images: bool,
) -> list[Prediction]:
    """What the model says about the images of a request."""
    uploads = await admitted_uploads(request, service, ticket)
    if len(uploads) > most:
        raise RequestError(
            422,
            f"an answer as image/png shows one image, and there are {len(uploads)}; accept "
            f"application/json",
        )
    return await in_time(service, service.score(model, predictor, uploads, keep_images), 504)


async def admitted_uploads(request: Request, service: Service, ticket: Ticket) -> list[Upload]:
    """The images of a request, which came in time and fit into the queue; none is decoded yet."""
    uploads = await in_time(
        service,
        receive(request, service.settings.max_bytes, service.settings.queue, ticket.receive),
        TOO_SLOW,
    )
    ticket.admit(len(uploads), await service.claimed_pixels(uploads))
    return uploads


def _as_picture(
    predictor: Predictor, prediction: Prediction, rate: float, kind: MapKind
) -> Response:
    response = image_response(predictor, prediction, rate, None)
    headers = {
        f"igd-{field.replace('_', '-')}": str(getattr(response, field)).lower()
        for field in HEADER_FIELDS
    }
    picture = map_png(predictor, prediction, rate, kind)
    return Response(picture, media_type="image/png", headers=headers)


async def in_time(service: Service, work: Awaitable[Result], status: int) -> Result:
    try:
        return await asyncio.wait_for(work, service.settings.timeout)
    except asyncio.TimeoutError:
        slow = "the images did not arrive" if status == TOO_SLOW else "the images were not scored"
        raise RequestError(
            status, f"{slow} within {service.settings.timeout:g} seconds; send fewer, or later"
        ) from None
