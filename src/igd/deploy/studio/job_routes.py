"""Jobs over HTTP: train, calibrate, compare, report, export; stop, resume, delete."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.routes import TOKEN
from igd.deploy.studio.data_folders import data_folder
from igd.deploy.studio.database import Number
from igd.deploy.studio.job_store import ACTIVE, RESUMABLE
from igd.deploy.studio.studio import Studio, studio_of
from igd.deploy.studio.workspace import check_model_name

router = APIRouter(dependencies=[TOKEN])
LEAST_IMAGES = 3


class NewJob(BaseModel):
    """What is to be done; which fields are needed depends on the kind."""

    kind: Literal["train", "calibrate", "compare", "report", "export"]
    model: str
    other: str | None = Field(None, description="the second model of a comparison")
    set: Number | None = Field(None, description="the images")
    folder: str | None = Field(None, description="or, labelled ones, below the data root")
    excluded: list[int] = Field([], description="numbers of images that are left out")
    rate: float | None = Field(None, gt=0, lt=1, description="accepted share of false alarms")
    group_by: str | None = Field(
        None, max_length=200, description="a regular expression that finds the part in a name"
    )
    roi: tuple[int, int, int, int] | None = Field(
        None, description="x, y, width and height of the part of an image that counts"
    )
    replace: bool = Field(False, description="whether a model of this name may be replaced")


@router.get("/v1/jobs", summary="All jobs, the newest first")
def listed(request: Request) -> dict[str, Any]:
    return {"jobs": studio_of(request).jobs.list()}


@router.post("/v1/jobs", summary="Do something, when its turn comes")
def create(request: Request, asked: NewJob) -> dict[str, Any]:
    studio = studio_of(request)
    _check(studio, asked)
    spec = asked.model_dump(exclude={"kind", "model"}, exclude_none=True)
    number = studio.jobs.create(asked.kind, asked.model, spec)
    studio.queue.wake()
    return studio.jobs.get(number)


@router.get("/v1/jobs/{number}", summary="How far a job is, or what came of it")
def get(request: Request, number: Number) -> dict[str, Any]:
    return studio_of(request).jobs.get(number)


@router.post("/v1/jobs/{number}/stop", summary="Stop a job; it can be taken up again")
def stop(request: Request, number: Number) -> dict[str, Any]:
    studio = studio_of(request)
    told = studio.jobs.ask_to_stop(number)
    studio.queue.wake()
    return told


@router.post("/v1/jobs/{number}/resume", summary="Go on where a job stopped")
def resume(request: Request, number: Number) -> dict[str, Any]:
    studio = studio_of(request)
    _check_resumed(studio, studio.jobs.get(number))
    told = studio.jobs.resume(number)
    studio.queue.wake()
    return told


@router.delete("/v1/jobs/{number}", summary="Forget a job; its model stays")
def delete(request: Request, number: Number) -> dict[str, Any]:
    studio = studio_of(request)
    studio.jobs.delete(number)
    for path in (studio.workspace.checkpoint(number), studio.workspace.report_file(number)):
        path.unlink(missing_ok=True)
    return {"deleted": number}


@router.get("/v1/jobs/{number}/picture", summary="An image that a job showed, or its map")
def picture(
    request: Request, number: Number, name: str, kind: Annotated[Literal["photo", "layer"], Query()]
) -> Response:
    media = {"photo": "image/jpeg", "layer": "image/png"}[kind]
    return Response(studio_of(request).jobs.picture(number, name, kind), media_type=media)


@router.get("/v1/jobs/{number}/report", summary="The report that a job wrote")
def report(request: Request, number: Number) -> Response:
    studio = studio_of(request)
    path, model = studio.workspace.report_file(number), studio.jobs.get(number)["model"]
    if not path.is_file():
        raise RequestError(404, "this job wrote no report")
    # To be saved, not shown: a page that came from elsewhere must not run beside this one.
    return FileResponse(path, media_type="text/html", filename=f"{model}-report.html")


def _check(studio: Studio, asked: NewJob) -> None:
    """Refuse at once what would fail when its turn comes."""
    check_model_name(asked.model)
    if asked.group_by is not None:
        try:
            re.compile(asked.group_by)
        except re.error as error:
            raise RequestError(422, f"group_by is no regular expression ({error})") from None
    if asked.kind == "train":
        _check_training(studio, asked)
        return
    models = [asked.model]
    if asked.kind == "compare":
        if asked.other is None:
            raise RequestError(422, "a comparison needs a second model (other)")
        models.append(check_model_name(asked.other))
    for name in models:
        if studio.models.path_of(name).suffix != ".igd":
            raise RequestError(422, f"{name} is an exported model, which stays as it is")
    if asked.kind == "calibrate" and asked.set is None:
        raise RequestError(422, "calibrating needs good images (set)")
    if asked.kind in ("compare", "report"):
        if (asked.set is None) == (asked.folder is None):
            raise RequestError(422, "give labelled images: either a set, or a folder")
        if asked.folder is not None:
            data_folder(studio.data_root, asked.folder)
    if asked.set is not None:
        studio.sets.describe(asked.set)


def _check_training(studio: Studio, asked: NewJob) -> None:
    if asked.set is None:
        raise RequestError(422, "training needs images (set)")
    images = studio.sets.describe(asked.set)["images"]
    left = [each for each in images if not each["reason"] and each["number"] not in asked.excluded]
    if len(left) < LEAST_IMAGES:
        raise RequestError(
            422,
            f"{len(left)} images are left, and {LEAST_IMAGES} are the least; better are 100",
        )
    if not asked.replace and _is_taken(studio, asked.model):
        raise RequestError(
            409, f"there is a model '{asked.model}' already; replace it, or choose another name"
        )


def _check_resumed(studio: Studio, job: dict[str, Any]) -> None:
    """Refuse to go on where the images are gone by now, or the model's name is another's."""
    if job["state"] not in RESUMABLE:
        return
    spec, model = job["spec"], job["model"]
    if "set" in spec and not studio.sets.exists(spec["set"]):
        raise RequestError(
            409, "the images of this job were deleted; delete the job, and begin another"
        )
    if job["kind"] == "train" and not spec.get("replace", True) and _is_taken(studio, model):
        raise RequestError(
            409,
            f"another model has the name '{model}' by now; delete that model to go on, or train "
            f"these images under another name",
        )


def _is_taken(studio: Studio, model: str) -> bool:
    """Whether there is a model of this name, or a training that is to make it."""
    return model in studio.models.files or any(
        job["kind"] == "train" and job["model"] == model for job in studio.jobs.in_state(*ACTIVE)
    )
