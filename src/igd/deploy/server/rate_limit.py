"""How often one client may ask: a bucket that fills steadily, of what it may ask in a minute."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from igd.deploy.server.uploads import discard

MINUTE = 60.0
MOST_CLIENTS = 10_000  # remembered; who has not asked for longest is forgotten first
LIMITED = "/v1/"  # health checks and the page cost nothing
SITE = 64  # bits of an IPv6 address that one site has: it may use any of those below


class RateLimiter:
    """Requests of each client, by its address."""

    def __init__(self, a_minute: float, now: Callable[[], float] = time.monotonic) -> None:
        self.a_minute, self.now = a_minute, now
        self.clients: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, and when

    def wait(self, address: str) -> float:
        """Seconds until a client may ask; 0: it may now, and has."""
        now, client = self.now(), _site(address)
        left, then = self.clients.pop(client, (self.a_minute, now))
        left = min(self.a_minute, left + (now - then) * self.a_minute / MINUTE)
        allowed = left >= 1
        self.clients[client] = (left - 1 if allowed else left, now)
        if len(self.clients) > MOST_CLIENTS:
            self.clients.popitem(last=False)
        return 0.0 if allowed else (1 - left) * MINUTE / self.a_minute


class RateLimitMiddleware:
    """Refuses requests that come too often, before their bodies are looked at."""

    def __init__(self, app: ASGIApp, a_minute: float | None, max_bytes: int) -> None:
        self.app, self.max_bytes = app, max_bytes
        self.limiter = None if a_minute is None else RateLimiter(a_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limiter = self.limiter
        if limiter and scope["type"] == "http" and scope["path"].startswith(LIMITED):
            seconds = limiter.wait((scope.get("client") or ("unknown", 0))[0])
            if seconds:
                await discard(Request(scope, receive), self.max_bytes)
                whole = math.ceil(seconds)
                detail = f"more than {limiter.a_minute:g} requests a minute; ask again in {whole} s"
                refusal = JSONResponse({"detail": detail}, 429, {"Retry-After": str(whole)})
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _site(address: str) -> str:
    """An IPv4 address, or what one owner of IPv6 addresses has."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if not isinstance(known, IPv6Address):
        return address
    return str(known.ipv4_mapped or ip_network((known, SITE), strict=False))
