"""A small model on disk, and applications that serve it."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from conftest import spotted, stripes
from PIL import Image
from starlette.testclient import TestClient

from igd import IGD
from igd.deploy.server.app import create_app
from igd.deploy.server.lifecycle import make_server
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings
from igd.inference.predictor import Predictor


def png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.fixture(scope="session")
def good() -> bytes:
    return png(stripes(1, seed=11)[0])


@pytest.fixture(scope="session")
def bad() -> bytes:
    return png(spotted(stripes(1, seed=12))[0])


@pytest.fixture(scope="session")
def model_file(fitted: IGD, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "parts.igd"
    fitted.save(path)
    return path


@pytest.fixture
def serving(fitted: IGD) -> Iterator[Callable[..., TestClient]]:
    """A client of an application with these settings."""
    opened: list[TestClient] = []

    def start(predictor: Predictor = fitted, **settings: object) -> TestClient:
        service = Service(Settings(**settings))
        service.open({"parts": predictor})
        opened.append(TestClient(create_app(service)))
        return opened[-1].__enter__()

    yield start
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serving: Callable[..., TestClient]) -> TestClient:
    return serving()


@pytest.fixture
def served(fitted: IGD) -> Iterator[Callable[..., str]]:
    """The address of a server with these settings and models."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(*names: str, **settings: object) -> str:
        service = Service(Settings(**settings))
        service.open(dict.fromkeys(names or ("parts",), fitted))
        listener = socket.create_server(("127.0.0.1", 0))
        server = make_server(service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for server, thread in servers:
        server.should_exit = server.force_exit = True
        thread.join()
