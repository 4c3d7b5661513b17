"""The server, on 127.0.0.1: bad requests over raw sockets, many clients at once, and a soak.

A bad request must be answered with 4xx or have its connection closed; between them, and from every
client of the crowd and the soak, an undamaged image must score what it scores alone.
"""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from numpy.random import Generator
from serving import serving

from torture.damaged_images import SAME, Connection, peak
from torture.materials import Materials, encoded
from torture.mutations import BYTES, chance
from torture.tally import Tally

TIMEOUT = 3.0  # that the server gives bodies which don't come
DEADLINE = 20.0  # of an answer to a bad request
AT_ONCE = 16  # bad requests
BETWEEN = 25  # bad requests between two good ones
CLIENTS = 50
A_CLIENT = 10  # requests of each of the crowd
SOAKING = 8  # clients of the soak
GROWTH_MB = 150  # of memory over a soak
SOAK = 5  # requests of soak for each bad one

METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "HEAD", "\xff", "")
PATHS = (
    *("/v1/models/{}/score", "/v1/models", "/v1/models/none/score", "/", "/metrics", "/readyz"),
    *("/v1/models/%00/score", "/v1/models/../../etc/passwd", "/%ff%fe", "/" + "a" * 9000, "*", ""),
    "/v1/models/{}/score?map=overlay",
    "/v1/models/{}/score?map=wild&max_false_alarms=nan",
    "/v1/models/{}/score?max_false_alarms=-1",
    "/v1/models/{}/score?max_false_alarms=1e400",
)
HEADERS = (
    *(
        "Host: 127.0.0.1",
        "Host: evil.example",
        "Host: [",
        "Content-Length: -1",
        "Content-Length: x",
    ),
    *("Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Transfer-Encoding: x"),
    *("Content-Type: multipart/form-data", "Content-Type: multipart/form-data; boundary=b"),
    *("Content-Type: \xff", "Expect: 100-continue", "Origin: null", "Sec-Fetch-Site: cross-site"),
    *("Accept: image/png", "Authorization: Bearer \xe9", "Range: bytes=0-", "X: " + "y" * 70_000),
    *("no colon", ": no name", "Connection: upgrade", "Upgrade: websocket", "Cookie: a=b; " * 50),
)


def torture(materials: Materials, count: int, seed: int) -> list[Tally]:
    """`count` bad requests, a crowd of `CLIENTS`, and `SOAK` times as many requests of soak."""
    bad, crowd, soak = (
        Tally(f"server: {name}")
        for name in ("bad requests", f"{CLIENTS} clients at once", f"soak, {SOAKING} clients")
    )
    contents = encoded()[0][1]
    with serving(materials.igd, TIMEOUT) as (url, process):
        expected = Connection(url).ask(contents)["score"]
        all_bad(url, materials.igd.stem, contents, expected, count, seed, bad)
        bad.remember(peak(process.pid))
    with serving(materials.igd) as (url, process):
        together(url, contents, expected, CLIENTS, min(CLIENTS * A_CLIENT, SOAK * count), crowd)
        crowd.remember(peak(process.pid))
        together(url, contents, expected, SOAKING, count, soak)  # warm
        before = resident(process.pid)
        together(url, contents, expected, SOAKING, (SOAK - 1) * count, soak)
        grown = resident(process.pid) - before
        soak.remember(peak(process.pid))
        if grown > GROWTH_MB:
            soak.add("wrong", f"memory grew by {grown:.0f} MB")
        if process.poll() is not None:
            soak.add("crashed", f"the server ended with {process.returncode}")
    return [bad, crowd, soak]


def all_bad(
    url: str, model: str, image: bytes, expected: float, count: int, seed: int, row: Tally
) -> None:
    """Send bad requests, some at once, and a good one now and then."""

    def attempt(number: int) -> tuple[bytes, str | None]:
        request = bad_request(chance(seed, number), model, image)
        return request, answered(url, request)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for number, (request, answer) in enumerate(threads.map(attempt, range(count))):
            _count_bad(row, number, request, answer)
            if number % BETWEEN == BETWEEN - 1:
                _count_good(row, Connection(url).ask(image), expected)


def bad_request(rng: Generator, model: str, image: bytes) -> bytes:
    """A request of which several parts are odd."""
    method = str(rng.choice(METHODS)) if rng.integers(3) == 0 else "POST"
    path = PATHS[int(rng.integers(len(PATHS)))] if rng.integers(2) else PATHS[0]
    headers = [HEADERS[int(n)] for n in rng.integers(len(HEADERS), size=int(rng.integers(4)))]
    if not any(each.startswith("Host") for each in headers) and rng.integers(10):
        headers.append("Host: 127.0.0.1")
    body = image
    ways = sorted(BYTES)
    for _ in range(int(rng.integers(3))):
        body = bytes(BYTES[ways[int(rng.integers(len(ways)))]](bytearray(body or b"x"), rng))
    if any("boundary=b" in each for each in headers):
        name = str(rng.choice(["a.png", "", "../../x", "\xff" * 300, 'a"b']))
        part = f'--b\r\nContent-Disposition: form-data; name="images"; filename="{name}"\r\n\r\n'
        body = (
            part.encode("latin-1")
            + body
            + str(rng.choice(["\r\n--b--\r\n", "", "\r\n--b"])).encode()
        )
    if any("chunked" in each for each in headers) and rng.integers(2):
        body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    if not any(each.startswith(("Content-Length", "Transfer")) for each in headers):
        off = int(rng.choice([0, 0, 0, 1, -1]))
        headers.append(f"Content-Length: {max(0, len(body) + off)}")
    lines = [f"{method} {path.format(model)} HTTP/{rng.choice(['1.1', '1.1', '1.0', '9.9', 'x'])}"]
    request = "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body
    if rng.integers(8) == 0:
        ways = sorted(BYTES)
        request = bytes(BYTES[ways[int(rng.integers(len(ways)))]](bytearray(request), rng))
    return request


def answered(url: str, request: bytes) -> str | None:
    """The status line of the answer, '' where the connection was closed, None where nothing came.
    What does not come is the server's to end: we only wait.
    """
    address = urlsplit(url)
    with socket.create_connection(
        (address.hostname, address.port or 80), timeout=DEADLINE
    ) as open_:
        try:
            open_.sendall(request)
            return open_.recv(200).split(b"\r\n")[0].decode("latin-1")
        except TimeoutError:
            return None
        except OSError:  # closed while we were sending
            return ""


def _count_bad(row: Tally, number: int, request: bytes, answer: str | None) -> None:
    case = f"{number}: {request[:120]!r}: {answer}"
    if answer is None:
        return row.add("hung", case)
    status = answer.split(" ")[1] if " " in answer else ""
    if status.startswith("5"):
        return row.add("crashed", case)
    return row.add("survived" if status.startswith(("1", "2", "3")) else "refused", case)


def _count_good(row: Tally, answer: dict[str, Any], expected: float) -> None:
    for outcome in ("crashed", "hung", "refused"):
        if outcome in answer:
            return row.add(outcome, f"an undamaged image: {answer[outcome]}")
    right = abs(answer["score"] - expected) <= SAME
    return row.add("survived" if right else "wrong", f"{answer['score']}, alone {expected}")


def together(
    url: str, image: bytes, expected: float, clients: int, requests: int, row: Tally
) -> None:
    """Send one image so many times from so many clients; a full queue refuses some with 429."""
    todo, lock = iter(range(requests)), threading.Lock()

    def client() -> None:
        connection = Connection(url)
        while True:
            with lock:
                if next(todo, None) is None:
                    return
            answer = connection.ask(image)
            with lock:
                _count_good(row, answer, expected)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def resident(pid: int) -> float:
    """Resident memory of a process, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
