"""What surrounds every request: host, token, security headers, metrics, a line of log."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from igd.deploy.server.roles import role_needed, role_of
from igd.deploy.server.service import Service
from igd.deploy.server.uploads import discard

CLOSED = ("/v1/", "/metrics")  # what a token opens; the page itself must be there to ask for one
GONE = 499  # the client went away before its answer: for the log alone
LONGEST_PATH = 200
ROLE = "igd.role"  # of whoever asks, in a request's scope

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "media-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class GuardMiddleware:
    """The outermost part of the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, received, status = time.perf_counter(), 0, 500  # unless there is an answer
        asked = dict(scope)  # the routes find theirs, and note it there
        if without_body := scope["method"] == "HEAD":
            asked["method"] = "GET"

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def protecting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            elif without_body:
                message = {**message, "body": b""}
            await send(message)

        try:
            headers = Headers(scope=scope)
            if "content-length" in headers and "transfer-encoding" in headers:
                await _ambiguous()(asked, counting, protecting)
                return
            closed = scope["path"].startswith(CLOSED)
            refusal = self._refusal(headers, asked) if closed else None
            if refusal:
                await discard(Request(scope, counting), self.service.settings.max_bytes)
                await refusal(asked, counting, protecting)
            else:
                await self.app(asked, counting, protecting)
        finally:
            seconds = time.perf_counter() - started
            self.service.metrics.answered(_route(asked), status, seconds)
            _log(scope["method"], asked, status, seconds, received)

    def _refusal(self, headers: Headers, scope: Scope) -> JSONResponse | None:
        """Why the one who asks may not, or None; notes the role of one who may."""
        method = scope["method"]
        hosts, asked = self.service.settings.hosts, headers.get("host", "")
        if hosts and _host_name(asked) not in hosts:
            detail = (
                f"this server does not answer for {asked[:LONGEST_PATH]!r}; "
                f"ask for {hosts[0]}, or start it with --allowed-host"
            )
            return JSONResponse({"detail": detail}, status_code=421)
        if method not in ("GET", "HEAD") and _is_foreign(headers):
            detail = "a page of another site sent this; only this server's own page may"
            return JSONResponse({"detail": detail}, status_code=403)
        role = role_of(self.service.settings.tokens, headers.get("authorization", ""))
        if role is None:
            detail = "the token is missing or wrong; send it as Authorization: Bearer TOKEN"
            return JSONResponse(
                {"detail": detail}, status_code=401, headers={"WWW-Authenticate": "Bearer"}
            )
        needed = role_needed(method, scope["path"])
        if role < needed:
            detail = (
                f"this needs a token of the role '{needed.label}', and yours is of the role "
                f"'{role.label}'; ask whoever started the server"
            )
            return JSONResponse({"detail": detail}, status_code=403)
        scope[ROLE] = role
        return None


def _ambiguous() -> JSONResponse:
    """A body of two lengths ends elsewhere for a proxy than for us: what follows it could be taken
    for another's request.
    """
    detail = "Content-Length beside Transfer-Encoding: a body has one length; send one of them"
    return JSONResponse({"detail": detail}, status_code=400, headers={"Connection": "close"})


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site sent this; programs say nothing of it."""
    site = headers.get("sec-fetch-site")
    if site is not None:  # what pages can't change, and proxies leave as it is
        return site.lower() not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and _origin_host(origin) != headers.get("host", "").lower()


def _origin_host(origin: str) -> str | None:
    """Host and port of an origin, as a Host header has them."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _host_name(asked: str) -> str | None:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{asked}").hostname
    except ValueError:  # brackets that are not closed
        return None


def _route(scope: Scope) -> str:
    """The route's pattern, or 'other': strangers must not be able to invent labels."""
    return getattr(scope.get("route"), "path", "other")


def _log(method: str, scope: Scope, status: int, seconds: float, received: int) -> None:
    line: dict[str, Any] = {
        "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "method": method,
        "path": scope["path"][:LONGEST_PATH],
        "status": status,
        "ms": round(1000 * seconds, 1),
        "bytes": received,
    }
    if model := scope.get("path_params", {}).get("name"):
        line["model"] = model[:LONGEST_PATH]
    sys.stderr.write(json.dumps(line) + "\n")
