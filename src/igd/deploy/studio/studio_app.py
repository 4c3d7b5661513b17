"""The application of a studio: the server's, with more routes and a page of its own."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from igd.deploy.server.app import create_app, read_page
from igd.deploy.studio import job_routes, model_routes, set_routes, verdict_routes
from igd.deploy.studio.studio import Studio
from igd.errors import UserError

# With the server's own page.
SHARED = (
    *("page.css", "camera.js", "server.js", "token_dialog.js", "verdicts.js", "icon.svg"),
    *("docs.html", "docs.css", "docs.js"),
)
PAGE = (
    "studio.html",
    "studio.css",
    "studio.js",
    "studio_texts.js",
    "elements.js",
    "pictures.js",
    "models_view.js",
    "model_view.js",
    "train_view.js",
    "image_intake.js",
    "roi_field.js",
    "job_view.js",
    "inspect_view.js",
    "history_view.js",
    "verdict_view.js",
    "compare_view.js",
)


def create_studio_app(studio: Studio) -> FastAPI:
    routes = APIRouter()
    for each in (set_routes, job_routes, verdict_routes, model_routes):
        routes.include_router(each.router)
    own = read_page("igd.deploy.studio", PAGE)
    page = {"index.html": own.pop("studio.html"), **own}
    page |= read_page("igd.deploy.server", SHARED)
    app = create_app(studio.service, page, routes, studio.close)
    app.state.studio = studio
    app.add_exception_handler(UserError, _user_error)
    return app


async def _user_error(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 422)
