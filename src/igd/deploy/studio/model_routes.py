"""Models over HTTP: what each learnt from, what it promises, and how that turned out."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse

from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.middleware import ROLE
from igd.deploy.server.roles import Role
from igd.deploy.server.routes import TOKEN
from igd.deploy.studio.job_store import ACTIVE
from igd.deploy.studio.studio import studio_of
from igd.version import __version__

router = APIRouter(dependencies=[TOKEN])


@router.get("/v1/studio", summary="What whoever asks may do here, and the studio's limits")
def about(request: Request) -> dict[str, Any]:
    studio = studio_of(request)
    role: Role = request.scope[ROLE]
    settings = studio.service.settings
    return {
        "version": __version__,
        "role": role.label,
        "has_data_root": studio.data_root is not None,
        "max_bytes": settings.max_bytes,
        "max_pixels": settings.max_pixels,
        "max_images": settings.queue,
        "verdicts_kept": studio.verdicts.limits.verdicts,
        "images_kept": studio.verdicts.limits.image_bytes > 0,
    }


@router.get("/v1/studio/models", summary="All models of the workspace")
def listed(request: Request) -> dict[str, Any]:
    return {"models": studio_of(request).models.describe()}


@router.get("/v1/studio/models/{name}", summary="One model, with all that its file says")
def described(request: Request, name: str) -> dict[str, Any]:
    return studio_of(request).models.describe_one(name)


@router.get("/v1/studio/models/{name}/{kind}", summary="The model as a file")
def download(request: Request, name: str, kind: Literal["igd", "onnx"]) -> Response:
    models = studio_of(request).models
    path = models.export_of(name) if kind == "onnx" else models.path_of(name)
    if path is None or path.suffix != f".{kind}":
        raise RequestError(404, f"there is no .{kind} file of '{name}'; export it first")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


@router.delete("/v1/studio/models/{name}", summary="Delete a model's files")
def delete(request: Request, name: str) -> dict[str, Any]:
    studio = studio_of(request)
    if any(job["model"] == name for job in studio.jobs.in_state(*ACTIVE)):
        raise RequestError(409, f"a job works on '{name}'; stop it first")
    studio.models.delete(name)
    return {"deleted": name}
