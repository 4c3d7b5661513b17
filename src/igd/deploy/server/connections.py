"""Connections: how many there may be, and how long they may keep the server waiting."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import datetime, timezone
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from igd.deploy.server.settings import Settings

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FEWEST = 8  # connections, however few descriptors there are
SILENCE = 60.0  # seconds between two lines that say the same
BACKLOG = 100  # connections that wait to be accepted; a server out of descriptors tries so many
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
TOO_MANY = b'{"detail":"too many connections are open; ask again in a moment"}'


class BoundedProtocol(H11Protocol):
    """uvicorn's connection, with a deadline for each header and for each answer to be taken, and
    a limit to how many there are.
    """

    def __init__(self, *arguments: Any, settings: Settings, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.settings = settings
        self._header: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most = most_connections(self.settings.connections)
        if len(self.connections) > most:
            say_rarely(f"{most} connections are open; further ones are refused")
            transport.write(REFUSAL % (len(TOO_MANY), TOO_MANY))
            transport.close()
        else:
            self._await_header()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_header()

    def _await_header(self) -> None:
        """Between requests, what has begun to come must become a request in time; bytes that
        trickle in don't move the deadline.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._header)
            self._header = None
        elif self._header is None:
            self._header = self.loop.call_later(self.settings.header_timeout, self._close)

    def _close(self) -> None:
        self._header = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        _cancel(self._reader)
        super().resume_writing()

    def _watch_reader(self, unsent: int) -> None:
        self._reader = self.loop.call_later(self.settings.timeout, self._check_reader, unsent)

    def _check_reader(self, before: int) -> None:
        """Give up a client that has taken nothing of its answer since it was last looked at."""
        unsent = self.transport.get_write_buffer_size()
        if unsent < before:
            self._watch_reader(unsent)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._header)
        _cancel(self._reader)
        super().connection_lost(exc)


def most_connections(asked: int) -> int:
    """No more than half of the descriptors that the system grants: files need some too."""
    if resource is None:
        return asked
    granted, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return asked if granted == resource.RLIM_INFINITY else min(asked, max(FEWEST, granted // 2))


def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line where asyncio would write a traceback for each connection that it can't accept."""
    if "socket.accept()" in context.get("message", ""):
        reason = getattr(context.get("exception"), "strerror", None) or "out of resources"
        say_rarely(f"a connection can't be accepted ({reason}); trying again every second")
    else:
        loop.default_exception_handler(context)


_SAID: dict[str, float] = {}


def say_rarely(text: str, silence: float = SILENCE) -> None:
    """A line of log, unless it was said less than a minute ago."""
    now = time.monotonic()
    if now - _SAID.get(text, -silence) >= silence:
        _SAID[text] = now
        line = {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "warning": text,
        }
        sys.stderr.write(json.dumps(line) + "\n")


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
