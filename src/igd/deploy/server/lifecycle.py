"""Listening, loading, draining."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from igd.deploy.server.app import create_app
from igd.deploy.server.connections import BACKLOG, BoundedProtocol, handle_loop_error, say_rarely
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings
from igd.errors import UserError
from igd.inference.predictor import Predictor

FIRST_INHERITED = 3  # descriptor, by systemd's convention


class DrainingServer(uvicorn.Server):
    """Ends when asked to, after all that was admitted is answered; asked twice, at once."""

    hands_over = False  # to a successor that listens with the same socket
    leaving = False  # takes no more calls, and answers those it took
    servers_closed = False

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Receive a signal. It is not raised again at the end, as the parent does: a server that
        was asked to stop succeeded.
        """
        if self.leaving or self.service.state == "draining":
            self.should_exit = self.force_exit = True
        if self.hands_over:
            self.leaving = True
        else:
            self.service.drain()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(handle_loop_error)
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        if self.leaving:
            calls: Any = self.server_state.connections
            # Calls that were just taken are among these by the next tick.
            if self.servers_closed and all(call.cycle is not None for call in calls):
                self.service.drain()
            for each in self.servers:  # who calls from now on is the successor's
                each.close()
            self.servers_closed = True
        if self.service.state == "draining" and self.service.admission.requests == 0:
            self.should_exit = True
        return await super().on_tick(counter)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens for requests, or the reason why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, TCP is recognised by asyncio, which then sends at once; else every answer waits 40 ms
    # for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # From now on whoever calls waits; a model may be ready before the loop that answers.
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{host} port {port}: can't listen there ({reason}); choose another with --host and "
            f"--port"
        ) from None
    return listener


def inherited_socket() -> socket.socket | None:
    """The socket that systemd, or another parent, listens with for this process: it outlives the
    process, so that whoever calls during a restart waits and is not refused.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    return socket.socket(fileno=FIRST_INHERITED)


def make_server(
    service: Service, make_app: Callable[[Service], FastAPI] = create_app
) -> DrainingServer:
    """A server of this service, within the limits of its settings."""
    protocol: Any = partial(BoundedProtocol, settings=service.settings)
    config = uvicorn.Config(
        make_app(service),
        http=protocol,
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=list(service.settings.proxies),
        # For clients that don't take their answers.
        timeout_graceful_shutdown=math.ceil(service.settings.timeout),
    )
    return DrainingServer(config, service)


def serve(
    load: Callable[[], Mapping[str, Predictor]],
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[], None] = lambda: None,
    make_app: Callable[[Service], FastAPI] = create_app,
    waits: bool = False,
) -> None:
    """Answer requests until a signal says stop; models are loaded meanwhile, and `/readyz` says
    when they are. Where another process has the socket too, and `waits` for this one or its
    successor to take calls, none is taken before models are there, nor after the signal.

    SIGHUP loads the models again; those before answer until they are there.
    """
    service = Service(settings)
    server = make_server(service, make_app)
    server.hands_over = waits
    failure: list[Exception] = []

    def load_models() -> None:
        try:
            service.open(load())
            on_ready()
        except Exception as error:  # told to whoever started the server, in the main thread
            failure.append(error)
            service.drain()

    loader = threading.Thread(target=load_models, name="loader")
    loader.start()
    if waits:
        loader.join()
    _reload_on_hangup(service, load)
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        listener.close()
        loader.join()
    if failure:
        raise failure[0]


def _reload_on_hangup(service: Service, load: Callable[[], Mapping[str, Predictor]]) -> None:
    """Let SIGHUP load the models again, where there is such a signal, and in the main thread."""
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        return

    def reload() -> None:
        try:
            service.open(load())
            say_rarely("the models were loaded again", 0)
        except Exception as error:  # those before go on
            say_rarely(f"the models could not be loaded again, and stay: {error}", 0)

    signal.signal(
        signal.SIGHUP, lambda *_: threading.Thread(target=reload, name="reloader").start()
    )
