"""Sets of images over HTTP: dropped ones, and folders below the data root."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.routes import TOKEN, admitted_uploads, hear_out
from igd.deploy.studio.data_folders import list_folder
from igd.deploy.studio.database import Number
from igd.deploy.studio.studio import studio_of

router = APIRouter(dependencies=[TOKEN])


class NewSet(BaseModel):
    """Where the images come from: they are sent next, or they are there already."""

    folder: str | None = Field(None, max_length=1000, description="below the data root")
    history: str | None = Field(
        None, max_length=1000, description="a model: images that were inspected with it"
    )
    labelled: bool = Field(
        False, description="of these, the ones that people labelled; else all that pass for good"
    )


@router.get("/v1/folders", summary="Folders below the data root")
def folders(request: Request, path: Annotated[str, Query(max_length=1000)] = "") -> dict[str, Any]:
    return list_folder(studio_of(request).data_root, path)


@router.post("/v1/sets", summary="A new set of images")
def create(request: Request, asked: NewSet) -> dict[str, Any]:
    studio = studio_of(request)
    if asked.folder is not None:
        created = studio.sets.create_from_folder(asked.folder)
    elif asked.history is not None:
        kept = studio.verdicts.kept_images(asked.history, asked.labelled)
        if not kept:
            raise RequestError(
                422, "none of these images is kept; inspect some first, or drop images"
            )
        created = studio.sets.create_from_files(f"images inspected with {asked.history}", kept)
    else:
        created = studio.sets.create()
    return studio.sets.describe(created)


@router.get("/v1/sets/{number}", summary="A set of images, and why some are left out")
def describe(request: Request, number: Number) -> dict[str, Any]:
    return studio_of(request).sets.describe(number)


@router.post("/v1/sets/{number}/images", summary="Add images to a set")
async def add(
    request: Request,
    number: Number,
    label: Annotated[Literal["good", "defect"], Query()] = "good",
) -> dict[str, Any]:
    """As multipart files; each is decoded once, to know whether it can be used."""
    studio = studio_of(request)
    service = studio.service
    try:
        with service.admission.request() as ticket:
            uploads = await admitted_uploads(request, service, ticket)

            def keep(name: str, file: Any) -> dict[str, Any]:
                with file:
                    return studio.sets.add(number, name, file.read(), int(label == "defect"))

            kept = (service.in_thread(partial(keep, *upload)) for upload in uploads)
            return {"images": await asyncio.gather(*kept)}
    except RequestError as error:
        await hear_out(request, service, error)
        raise


@router.get("/v1/sets/{number}/images/{image}/thumbnail", summary="A small picture")
def thumbnail(request: Request, number: Number, image: Number) -> Response:
    return Response(studio_of(request).sets.thumbnail(number, image), media_type="image/jpeg")


@router.delete("/v1/sets/{number}", summary="Delete a set, and what was dropped for it")
def delete(request: Request, number: Number) -> dict[str, Any]:
    studio = studio_of(request)
    if studio.jobs.uses_set(number):
        raise RequestError(409, "a job still needs these images; delete the job first")
    studio.sets.delete(number)
    return {"deleted": number}
