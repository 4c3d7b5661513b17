"""The application: routes, page and middleware around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.middleware import GONE, GuardMiddleware
from igd.deploy.server.prefix import PrefixMiddleware
from igd.deploy.server.rate_limit import RateLimitMiddleware
from igd.deploy.server.routes import router
from igd.deploy.server.service import Service
from igd.version import __version__

PAGE = (
    "index.html",
    "page.css",
    "page.js",
    "camera.js",
    "cards.js",
    "server.js",
    "token_dialog.js",
    "verdicts.js",
    "icon.svg",
    "docs.html",
    "docs.css",
    "docs.js",
)
PLACES = {"index.html": "", "docs.html": "docs"}  # where pages are; other files are where they say
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def read_page(package: str, names: tuple[str, ...]) -> dict[str, bytes]:
    """The files of a package's page, by name."""
    folder = files(package).joinpath("page")
    return {name: folder.joinpath(name).read_bytes() for name in names}


def create_app(
    service: Service,
    page: Mapping[str, bytes] | None = None,
    more_routes: APIRouter | None = None,
    on_close: Callable[[], None] = lambda: None,
) -> FastAPI:
    """An ASGI application that answers from this service, and closes it when it ends. Another page
    than the server's own, and more routes, make another product of it.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        on_close()
        service.close()

    app = FastAPI(
        title="igd",
        version=__version__,
        summary="Scores images by how far they deviate from normal ones, and shows where.",
        docs_url=None,  # its pages come from elsewhere; /docs is our own
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        servers=[{"url": service.settings.prefix}] if service.settings.prefix else None,
    )
    app.state.service = service
    for routes in (router, more_routes):
        if routes is not None:
            app.include_router(routes)
    for name, content in (page or read_page("igd.deploy.server", PAGE)).items():
        place = f"/{PLACES.get(name, name)}"
        app.add_api_route(place, _file(name, content), include_in_schema=False)
    app.add_exception_handler(RequestError, _request_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _gone)
    limits = service.settings
    app.add_middleware(RateLimitMiddleware, a_minute=limits.rate_limit, max_bytes=limits.max_bytes)
    app.add_middleware(GuardMiddleware, service=service)
    app.add_middleware(PrefixMiddleware, prefix=limits.prefix)  # the outermost
    return app


def _file(name: str, content: bytes) -> Callable[[], Awaitable[Response]]:
    media_type = TYPES[name.rpartition(".")[2]]

    async def page() -> Response:
        return Response(content, media_type=media_type)

    return page


async def _request_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return JSONResponse({"detail": error.detail}, error.status, error.headers)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = (f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}" for fault in error.errors())
    return JSONResponse({"detail": "; ".join(faults)}, 422)


async def _gone(_: Request, __: Exception) -> Response:
    return Response(status_code=GONE)
