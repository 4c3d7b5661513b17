"""Slow, silent and too many clients: none of them keeps the others out."""

from __future__ import annotations

import errno
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from igd import IGD
from igd.deploy.server import connections
from igd.deploy.server.admission import BODIES_AT_ONCE, Admission
from igd.deploy.server.http_errors import RequestError
from igd.deploy.server.lifecycle import listen, make_server
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings

SCORE = "/v1/models/parts/score"
pytestmark = pytest.mark.xdist_group("server")
PATIENCE = 60  # seconds until a test gives up


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SAID", {})


@pytest.fixture
def connect() -> Iterator[Callable[[str], socket.socket]]:
    with ExitStack() as opened:

        def to(url: str) -> socket.socket:
            address = (urlsplit(url).hostname, urlsplit(url).port)
            return opened.enter_context(socket.create_connection(address, timeout=PATIENCE))

        yield to


def ask(url: str, method: str, path: str, body: bytes | None = None) -> int:
    link = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    link.request(method, path, body)
    status = link.getresponse().status
    link.close()
    return status


def test_headers_that_do_not_come(
    served: Callable[..., str], connect: Callable[[str], socket.socket]
) -> None:
    url = served(header_timeout=0.5)
    slow = [connect(url) for _ in range(100)]
    for link in slow[::2]:
        link.sendall(b"GET /healthz HTT")
    assert ask(url, "GET", "/healthz") == 200
    assert {link.recv(1000) for link in slow} == {b""}


def test_a_header_that_trickles_and_a_second_one_that_does_not_end(
    served: Callable[..., str], connect: Callable[[str], socket.socket]
) -> None:
    url = served(header_timeout=0.5)
    second = connect(url)
    second.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz")
    trickling = connect(url)
    trickling.settimeout(0.05)
    trickling.sendall(b"GET /healthz HTTP/1.1\r\n")
    for _ in range(20 * PATIENCE):
        try:
            trickling.sendall(b"A")
            assert trickling.recv(100) == b""
        except TimeoutError:
            continue
        except ConnectionError:
            pass
        break
    else:
        pytest.fail("it was never closed")
    received = b""
    while data := second.recv(1000):
        received += data
    assert received.startswith(b"HTTP/1.1 200")


def test_an_answer_that_nobody_takes(served: Callable[..., str]) -> None:
    address = urlsplit(served(timeout=0.3))
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(PATIENCE)
        link.connect((address.hostname, address.port))
        with pytest.raises(ConnectionError):
            while True:
                link.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)


def test_more_connections_than_there_may_be(
    served: Callable[..., str],
    connect: Callable[[str], socket.socket],
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = served(connections=4)
    held = [connect(url) for _ in range(4)]
    for _ in range(20):
        refused = connect(url)
        assert refused.recv(1000).startswith(b"HTTP/1.1 503")
    for link in held:
        link.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert link.recv(1000).startswith(b"HTTP/1.1 200")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["warning"] for line in told if "warning" in line] == [
        "4 connections are open; further ones are refused"
    ]


def test_connections_leave_descriptors_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    granted = 64
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (granted, granted))
    assert connections.most_connections(256) == 32
    assert connections.most_connections(4) == 4
    granted = 2
    assert connections.most_connections(256) == connections.FEWEST


class Exhausted(socket.socket):
    """A socket of a process that has no descriptors left, for a while."""

    tries = 0

    def accept(self) -> tuple[socket.socket, object]:
        self.tries += 1
        if self.tries <= 3 * connections.BACKLOG:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_without_descriptors_one_line_of_log(
    fitted: IGD, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    service = Service(Settings())
    service.open({"parts": fitted})
    server = make_server(service)
    plain = listen("127.0.0.1", 0)
    listener = Exhausted(plain.family, plain.type, plain.proto, plain.detach())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        port = listener.getsockname()[1]
        assert ask(f"http://127.0.0.1:{port}", "GET", "/healthz") == 200
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
    told = [line for line in capsys.readouterr().err.splitlines() if "accept" in line]
    assert len(told) == 1
    assert "Too many open files" in json.loads(told[0])["warning"]
    assert "accept" not in caplog.text


def test_slow_bodies_keep_nobody_out(
    served: Callable[..., str], connect: Callable[[str], socket.socket], good: bytes
) -> None:
    url = served(queue=4)
    for _ in range(16):
        link = connect(url)
        link.sendall(
            f"POST {SCORE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n"
            f"Expect: 100-continue\r\n\r\n".encode()
        )
        assert link.recv(1000).startswith(b"HTTP/1.1 100")
        link.sendall(good[:100])
    assert ask(url, "POST", SCORE, good) == 200


def test_bodies_have_a_budget_of_their_own() -> None:
    admission = Admission(Settings(max_bytes=10))
    with admission.request() as first, admission.request() as second:
        first.receive(10 * BODIES_AT_ONCE - 1)
        second.receive(1)
        with pytest.raises(RequestError) as refused:
            second.receive(1)
        assert refused.value.status == 429
    assert (admission.requests, admission.body_bytes) == (0, 0)


def test_a_body_of_two_lengths(
    served: Callable[..., str], connect: Callable[[str], socket.socket]
) -> None:
    link = connect(served())
    link.sendall(
        b"POST /v1/models/parts/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    received = b""
    while data := link.recv(1000):
        received += data
    assert received.startswith(b"HTTP/1.1 400")
    assert received.count(b"HTTP/1.1") == 1  # what follows is no request
