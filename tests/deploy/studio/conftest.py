"""A workspace with a small model in it, and studios that serve it."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from studio_browser import StudioPage

from igd.deploy.server.lifecycle import make_server
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings
from igd.deploy.studio.studio import Studio
from igd.deploy.studio.studio_app import create_studio_app
from igd.deploy.studio.verdicts import Limits
from igd.deploy.studio.workspace import Workspace

LIMITS = Limits()


@pytest.fixture
def workspace(tmp_path: Path, model_file: Path) -> Workspace:
    made = Workspace(tmp_path / "workspace")
    shutil.copy(model_file, made.models / "parts.igd")
    return made


@dataclass
class Opened:
    """A studio, and a client of it."""

    studio: Studio
    client: TestClient

    def inspect(self, *images: bytes, name: str = "image.png", **query: object) -> list[dict]:
        files = [("images", (name, image, "image/png")) for image in images]
        answer = self.client.post("/v1/models/parts/inspect", files=files, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["images"]


@pytest.fixture
def opening(workspace: Workspace) -> Iterator[Callable[..., Opened]]:
    """A studio of the workspace with these settings; jobs wait, as no queue runs."""
    clients: list[TestClient] = []

    def start(limits: Limits = LIMITS, data_root: Path | None = None, **settings: object) -> Opened:
        service = Service(Settings(**settings))
        studio = Studio.open(workspace, service, data_root, limits)
        client = TestClient(create_studio_app(studio))
        clients.append(client.__enter__())
        studio.models.refresh()
        service.open({})
        return Opened(studio, client)

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def opened(opening: Callable[..., Opened]) -> Opened:
    return opening()


@contextmanager
def _served(workspace: Workspace, **settings: object) -> Iterator[str]:
    service = Service(Settings(**settings))
    studio = Studio.open(workspace, service, None, Limits())
    server = make_server(service, lambda _: create_studio_app(studio))
    listener = socket.create_server(("127.0.0.1", 0))
    studio.start()
    service.open({})
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.fixture
def serving_studio(workspace: Workspace) -> Callable[..., AbstractContextManager[str]]:
    """The address of a studio with all its threads."""
    return lambda **settings: _served(workspace, **settings)


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def page(downloads: Path) -> Iterator[StudioPage]:
    opened = StudioPage(downloads)
    yield opened
    opened.browser.quit()
