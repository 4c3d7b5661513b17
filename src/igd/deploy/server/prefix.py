"""A server below a path of another site: /inspect/v1/models is /v1/models here."""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class PrefixMiddleware:
    """Takes the prefix off before anything decides by the path who may ask. A proxy that took it
    off already is understood too.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app, self.prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.prefix:
            path = scope["path"]
            if path == self.prefix:  # the page finds its parts from the folder that it is in
                await RedirectResponse(f"{self.prefix}/", 308)(scope, receive, send)
                return
            if path.startswith(f"{self.prefix}/"):
                scope = {**scope, "path": path[len(self.prefix) :]}
        await self.app(scope, receive, send)
