"""Listening, loading, draining."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from igd.deploy.server.app import create_app
from igd.deploy.server.connections import BACKLOG, BoundedProtocol, handle_loop_error
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings
from igd.errors import UserError
from igd.inference.predictor import Predictor


class DrainingServer(uvicorn.Server):
    """Ends when asked to, after all that was admitted is answered; asked twice, at once."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Receive a signal. It is not raised again at the end, as the parent does: a server that
        was asked to stop succeeded.
        """
        if self.service.state == "draining":
            self.should_exit = self.force_exit = True
        self.service.drain()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(handle_loop_error)
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
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
) -> None:
    """Answer requests until a signal says stop; models are loaded meanwhile, and `/readyz` says
    when they are.
    """
    service = Service(settings)
    server = make_server(service, make_app)
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
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        listener.close()
        loader.join()
    if failure:
        raise failure[0]
