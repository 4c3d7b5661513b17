"""`igd serve` as a process of its own: starting, refusing, draining."""

import asyncio
import contextlib
import copy
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from igd import IGD
from igd.cli import main
from igd.deploy.server import lifecycle
from igd.deploy.server.lifecycle import listen

ROOT = Path(__file__).parents[2]
SCORE = "/v1/models/parts/score"
pytestmark = pytest.mark.xdist_group("server")
LARGEST = 10_000  # bytes
START_SECONDS = 120  # to load a model in, on the slowest machine


class Running:
    """A server process, and what it said when it was ready."""

    def __init__(self, *arguments: object) -> None:
        command = [
            sys.executable,
            "-m",
            "igd.cli",
            "serve",
            *map(str, arguments),
            "--port",
            "0",
            "--json",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # A server that never becomes ready ends the wait with its own end, not with the test's.
        overdue = threading.Timer(START_SECONDS, self.process.kill)
        overdue.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        overdue.cancel()
        if not line:
            _, log = self.process.communicate()
            pytest.fail(
                f"the server ended with {self.process.returncode} before it was ready: {log}"
            )
        self.said = json.loads(line)
        self.address = urlsplit(self.said["url"])

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(str(self.address.hostname), self.address.port, timeout=30)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, dict]:
        connection = self.connection()
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def begin(self, length: int | None) -> socket.socket:
        return begin(self.said["url"], length)


def begin(url: str, length: int | None) -> socket.socket:
    """A request whose body the server has begun to wait for, so that it has been admitted."""
    address = urlsplit(url)
    link = socket.create_connection((address.hostname, address.port), timeout=30)
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    link.sendall(
        f"POST {SCORE} HTTP/1.1\r\nHost: localhost\r\n{size}\r\n"
        f"Expect: 100-continue\r\n\r\n".encode()
    )
    assert link.recv(1000).startswith(b"HTTP/1.1 100")
    return link


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def answer_of(link: socket.socket) -> tuple[int, dict]:
    answer = http.client.HTTPResponse(link)
    answer.begin()
    return answer.status, json.loads(answer.read())


@contextmanager
def running(*arguments: object) -> Iterator[Running]:
    server = Running(*arguments)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def limited(model_file: Path) -> Iterator[Running]:
    """A server of small bodies, with all the time that scoring may take."""
    with running(model_file, "--max-bytes", LARGEST) as server:
        yield server


def test_stopping_finishes_what_was_admitted_and_refuses_what_is_new(
    model_file: Path, bad: bytes
) -> None:
    with running(model_file) as server:
        assert server.said["models"] == ["parts"]
        admitted = server.begin(len(bad))
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.ask("GET", "/readyz")[0] == 503)
        status, answer = server.ask("POST", SCORE, bad)
        assert status == 503
        assert "being stopped" in answer["detail"]
        assert server.process.poll() is None
        admitted.sendall(bad)
        status, answer = answer_of(admitted)
        assert status == 200
        assert answer["images"][0]["is_anomalous"] is True
        assert server.process.wait(timeout=30) == 0
        lines = [json.loads(line) for line in server.process.stderr.read().splitlines()]
    assert {"POST 503", "POST 200"} <= {f"{line['method']} {line['status']}" for line in lines}


def test_408_a_body_that_does_not_come(served: Callable[..., str], good: bytes) -> None:
    """On a server of its own, so that no other test has to score within a second."""
    slow = begin(served(timeout=1), length=500)
    slow.sendall(good[:100])
    status, answer = answer_of(slow)
    assert status == 408
    assert answer["detail"] == "the images did not arrive within 1 seconds; send fewer, or later"


def test_413_a_body_without_length_is_cut_off(limited: Running) -> None:
    endless = limited.begin(length=None)
    with contextlib.suppress(OSError):  # the server closes some time after its answer
        for _ in range(8 * LARGEST // 1000):  # more than is read even of a body that was refused
            endless.sendall(b"3e8\r\n" + bytes(1000) + b"\r\n")
    status, answer = answer_of(endless)
    assert status == 413
    assert "10,000 bytes" in answer["detail"]


def test_a_client_that_goes_away_leaves_its_place(limited: Running, good: bytes) -> None:
    for _ in range(70):  # more than there are places
        limited.begin(length=500).close()
    assert limited.ask("POST", SCORE, good)[0] == 200


def test_the_commands_of_the_page_run(limited: Running, bad: bytes, tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    (tmp_path / "parts" / "new").mkdir(parents=True)
    for name in ("000.png", "001.png"):
        (tmp_path / "parts" / "new" / name).write_bytes(bad)
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    commands = [line for line in page.splitlines() if line.startswith("curl ")]
    assert len(commands) >= 3
    for command in commands:
        here = command.replace("http://127.0.0.1:8000", limited.said["url"]).replace(
            "curl ", "curl --fail --silent --show-error "
        )
        subprocess.run(
            here, shell=True, check=True, cwd=tmp_path, env={**os.environ, "IGD_TOKEN": "none"}
        )
    assert (tmp_path / "overlay.png").read_bytes().startswith(b"\x89PNG")


def test_whoever_calls_before_the_first_answer_is_not_turned_away() -> None:
    with (
        listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname(), timeout=5) as caller,
    ):
        assert caller.getpeername() == listener.getsockname()


def test_what_can_not_be_served(
    tmp_path: Path, model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parts.igd").write_bytes(b"no model")
    (tmp_path / "secret").write_bytes(b"\xff\xfe")
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        for arguments, said in (
            ([tmp_path / "parts.igd"], "parts.igd: "),
            ([tmp_path / "none.igd"], "none.igd: no such model file"),
            (
                [model_file, tmp_path / "parts.igd"],
                "would both be called 'parts'; rename one of the files",
            ),
            ([model_file, "--queue", "0"], "--queue is 0; it must be a positive number"),
            ([model_file, "--timeout", "nan"], "--timeout is nan"),
            (
                [model_file, "--max-pixels", "300000000"],
                "--max-pixels is 300,000,000, and igd decodes no image of more than 100,000,000",
            ),
            (
                [model_file, "--token-file", tmp_path / "none"],
                "the token can't be read (No such file or directory)",
            ),
            (
                [model_file, "--token-file", tmp_path / "secret"],
                "the token can't be read (not text)",
            ),
            ([model_file, "--port", port], f"127.0.0.1 port {port}: can't listen there"),
            ([model_file, "--port", "70000"], "choose another with --host and --port"),
        ):
            free = [] if "--port" in arguments else ["--port", "0"]
            assert main(["serve", *map(str, arguments), *free]) == 2
            assert said in capsys.readouterr().err


def test_a_token_needs_something_in_it(
    tmp_path: Path,
    model_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "token").write_text("\n")
    assert main(["serve", str(model_file), "--token-file", str(tmp_path / "token")]) == 2
    monkeypatch.setenv("IGD_TOKEN", "two\nlines")
    assert main(["serve", str(model_file)]) == 2
    assert capsys.readouterr().err.count("visible ASCII characters") == 2
    monkeypatch.setenv("IGD_TOKEN", "x" * 15)
    assert main(["serve", str(model_file)]) == 2
    told = capsys.readouterr().err
    assert "has 15 characters" in told
    assert "secrets.token_urlsafe()" in told


def test_a_missing_package_is_named(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "igd.deploy.server.lifecycle")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(model_file)]) == 2
    assert (
        "serving needs the package uvicorn; install it with: pip install 'igd-anomaly[serve]'"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--host", "0.0.0.0"], 2),
        (["--host", "some.name.example"], 2),
        (["--host", "0.0.0.0", "--insecure"], 0),
        (["--host", "0.0.0.0", "--token-file", "token"], 0),
        (["--host", "127.0.0.2"], 0),
    ],
)
def test_an_open_server_needs_a_token(
    arguments: list[str],
    code: int,
    model_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IGD_TOKEN", raising=False)
    monkeypatch.setattr(
        lifecycle, "serve", lambda load, settings, listener, on_ready, waits: listener.close()
    )
    (tmp_path / "token").write_text("a secret of some length\n")
    assert main(["serve", str(model_file), "--port", "0", *arguments]) == code
    assert ("--token-file FILE" in capsys.readouterr().err) is (code == 2)


def test_answers_are_sent_at_once() -> None:
    """Else every answer waits for an acknowledgement of its first packet."""

    async def accepted() -> int:
        options: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            options.set_result(
                writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            )
            writer.close()

        async with await asyncio.start_server(answer, sock=listen("127.0.0.1", 0)) as server:
            await asyncio.open_connection(*server.sockets[0].getsockname())
            return await options

    assert asyncio.run(accepted()) != 0


def test_a_restart_refuses_nobody(model_file: Path, good: bytes) -> None:
    """Two processes, one after the other, on a socket that outlives both: every call is answered,
    and those that came in between wait for the second.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    port, answers, ended = listener.getsockname()[1], list[int](), threading.Event()

    def start() -> subprocess.Popen[str]:
        """As systemd does: the socket is descriptor 3, meant for this very process."""
        script = (
            f"import os, runpy, sys; os.dup2({listener.fileno()}, 3); "
            f"os.environ |= dict(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); "
            f"sys.argv[1:] = ['serve', {str(model_file)!r}]; runpy.run_module('igd.cli', "
            f"run_name='__main__')"
        )
        return subprocess.Popen(
            [sys.executable, "-c", script],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            pass_fds=[listener.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def keep_asking() -> None:
        while not ended.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
            connection.request("POST", SCORE, good)
            answers.append(connection.getresponse().status)
            connection.close()
            time.sleep(0.01)

    first = start()
    asking = [threading.Thread(target=keep_asking) for _ in range(2)]
    second = None
    try:
        for each in asking:
            each.start()
        until(lambda: len(answers) > 5)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
        second = start()
        before = len(answers)
        until(lambda: len(answers) > before + 5)
    finally:
        ended.set()
        for each in asking:
            each.join(20)
        for process in (first, second):
            if process is not None:
                process.kill()
                process.communicate()
        listener.close()
    assert {*answers} == {200}


def test_hangup_loads_the_models_again(model_file: Path, fitted: IGD, tmp_path: Path) -> None:
    """A file that was replaced is served after SIGHUP; a broken one leaves the model before."""
    path = shutil.copy(model_file, tmp_path / "parts.igd")
    with running(path) as server:

        def rate() -> float:
            return server.ask("GET", "/v1/models")[1]["models"][0]["max_false_alarms"]

        before = rate()
        changed = copy.deepcopy(fitted)
        changed.max_false_alarms = 0.25
        changed.save(path)
        assert rate() == before
        server.process.send_signal(signal.SIGHUP)
        until(lambda: rate() == 0.25)
        path.write_bytes(b"no model")
        server.process.send_signal(signal.SIGHUP)
        assert server.process.stderr is not None
        while "could not be loaded again" not in server.process.stderr.readline():
            pass
        assert rate() == 0.25
