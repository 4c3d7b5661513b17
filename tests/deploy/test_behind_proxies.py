"""A server that others reach through a proxy: by name, below a path, not too often. The examples of
deploy/ are run as they are, but for addresses and certificates.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from igd.cli import main
from igd.deploy.server.rate_limit import MOST_CLIENTS, RateLimiter

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME, TOKEN = "inspect.example.com", "0123456789abcdef0123"
SCORE = "/v1/models/parts/score"
BEHIND = {"hosts": ("127.0.0.1", NAME), "prefix": "/igd", "token": TOKEN}
pytestmark = pytest.mark.xdist_group("server")


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"{program} is not on this machine"
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Proxy:
    """What a client of the proxy gets."""

    def __init__(self, port: int, tls: bool) -> None:
        self.port, self.tls = port, tls

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
        more = {"context": ssl._create_unverified_context()} if self.tls else {}
        connection = kind("127.0.0.1", self.port, timeout=30, **more)
        sent = {"Host": NAME, "Authorization": f"Bearer {TOKEN}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


@contextmanager
def proxied(command: list[str], proxy: Proxy) -> Iterator[Proxy]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", proxy.port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None:
                    pytest.fail(process.communicate()[1].decode())
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield proxy
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def nginx(upstream: str, folder: Path) -> Iterator[Proxy]:
    proxy = Proxy(free_port(), tls=True)
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", f"/CN={NAME}", "-days", "1", "-newkey", "rsa:2048", "-nodes"]
    made = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *subject, *made], check=True, capture_output=True)
    site = (DEPLOY / "nginx.conf").read_text()
    for before, after in (
        ("127.0.0.1:8000", upstream),
        ("listen 443 ssl", f"listen 127.0.0.1:{proxy.port} ssl"),
        (f"/etc/ssl/certs/{NAME}.pem", str(certificate)),
        (f"/etc/ssl/private/{NAME}.key", str(key)),
    ):
        assert before in site
        site = site.replace(before, after)
    kept = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr;\nevents {{}}\n"
        f"http {{ access_log off;\n{kept}{site}}}\n"
    )
    with proxied(["nginx", "-c", str(config), "-p", str(folder)], proxy) as running:
        yield running


@contextmanager
def caddy(upstream: str, folder: Path) -> Iterator[Proxy]:
    proxy = Proxy(free_port(), tls=False)
    site = (DEPLOY / "Caddyfile").read_text()
    for before, after in (
        ("127.0.0.1:8000", upstream),
        (f"\n{NAME} {{", f"\nhttp://{NAME}:{proxy.port} {{\n\tbind 127.0.0.1"),
    ):
        assert before in site
        site = site.replace(before, after)
    config = folder / "Caddyfile"
    options = f"admin off\n\tauto_https off\n\tstorage file_system {folder}"
    config.write_text(f"{{\n\t{options}\n}}\n{site}")
    command = ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"]
    with proxied(command, proxy) as running:
        yield running


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(nginx, marks=[needs("nginx"), needs("openssl")]),
        pytest.param(caddy, marks=needs("caddy")),
    ],
)
def test_the_examples_as_they_are(
    behind: Callable[[str, Path], Iterator[Proxy]],
    served: Callable[..., str],
    bad: bytes,
    tmp_path: Path,
) -> None:
    upstream = urlsplit(served(**BEHIND, rate_limit=12)).netloc
    with behind(upstream, tmp_path) as proxy:  # type: ignore[attr-defined]
        status, headers, _ = proxy.ask("GET", "/igd")
        assert (status, headers["Location"].endswith("/igd/")) == (308, True)
        status, headers, page = proxy.ask("GET", "/igd/")
        assert status == 200
        assert b"Drop images here" in page
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert proxy.ask("GET", "/igd/page.css")[0] == 200
        assert proxy.ask("GET", "/igd/docs")[0] == 200
        described = json.loads(proxy.ask("GET", "/igd/openapi.json")[2])
        assert described["servers"] == [{"url": "/igd"}]
        status, _, answer = proxy.ask("POST", f"/igd{SCORE}", bad)
        assert (status, json.loads(answer)["images"][0]["is_anomalous"]) == (200, True)
        assert proxy.ask("POST", f"/igd{SCORE}", bad, Authorization="none")[0] == 401
        assert proxy.ask("GET", "/igd/metrics")[0] == 404
        # Whoever says to be somebody else each time is one client all the same.
        asked = [proxy.ask("GET", "/igd/v1/models", X_Forwarded_For=f"10.0.0.{n}") for n in (1, 2)]
        assert [status for status, _, _ in asked] == [200, 200]
        rest = [
            proxy.ask("GET", "/igd/v1/models", X_Forwarded_For=f"10.0.1.{n}") for n in range(12)
        ]
        status, headers, answer = rest[-1]
        assert status == 429
        assert 1 <= int(headers["Retry-After"]) <= 5
        assert b"more than 12 requests a minute; ask again in" in answer


@needs("nginx")
@needs("openssl")
def test_names_and_bodies_that_are_refused_behind_a_proxy(
    served: Callable[..., str], tmp_path: Path
) -> None:
    upstream = urlsplit(served(**BEHIND)).netloc
    with nginx(upstream, tmp_path) as proxy:
        status, _, answer = proxy.ask("GET", "/igd/v1/models", Host="evil.example.com")
        assert status == 421
        assert b"--allowed-host" in answer
        connection = http.client.HTTPSConnection(
            "127.0.0.1", proxy.port, timeout=30, context=ssl._create_unverified_context()
        )
        connection.putrequest("POST", f"/igd{SCORE}", skip_host=True)
        connection.putheader("Host", NAME)
        connection.putheader("Content-Length", str(60_000_000))
        connection.endheaders()
        assert connection.getresponse().status == 413


def test_below_a_path(serving: Callable[..., TestClient]) -> None:
    client = serving(prefix="/a/b", token=TOKEN)
    assert client.get("/a/b", follow_redirects=False).headers["location"] == "/a/b/"
    for path in ("/a/b/", "/", "/a/b/page.js", "/page.js", "/a/b/healthz"):
        assert client.get(path).status_code == 200, path
    # However often it is written, no prefix leads around the token.
    for path in ("/v1/models", "/a/b/v1/models", "/a/b/a/b/v1/models", "/a/b//v1/models"):
        assert client.get(path).status_code in (401, 404), path
    assert client.get("/a/bv1/models").status_code == 404
    known = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/a/b/v1/models", headers=known).status_code == 200


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_a_client_asks_as_often_as_it_may() -> None:
    clock = Clock()
    limiter = RateLimiter(6, clock)
    assert [limiter.wait("10.0.0.1") for _ in range(6)] == [0.0] * 6
    assert limiter.wait("10.0.0.1") == pytest.approx(10)
    assert limiter.wait("10.0.0.2") == 0.0
    clock.time += 9.9
    assert limiter.wait("10.0.0.1") == pytest.approx(0.1)
    clock.time += 0.2
    assert limiter.wait("10.0.0.1") == 0.0
    assert limiter.wait("10.0.0.1") > 0
    clock.time += 3600
    assert [limiter.wait("10.0.0.1") > 0 for _ in range(7)] == [False] * 6 + [True]


def test_addresses_of_one_site_are_one_client_and_memory_is_bounded() -> None:
    limiter = RateLimiter(1, Clock())
    assert limiter.wait("2001:db8::1") == 0.0
    assert limiter.wait("2001:db8::ffff") > 0
    assert limiter.wait("2001:db8:0:1::1") == 0.0
    assert limiter.wait("::ffff:10.0.0.1") == 0.0
    assert limiter.wait("10.0.0.1") > 0
    for number in range(MOST_CLIENTS + 5):
        limiter.wait(f"client {number}")
    assert len(limiter.clients) == MOST_CLIENTS


def test_the_page_and_health_are_not_counted(serving: Callable[..., TestClient]) -> None:
    client = serving(rate_limit=1)
    assert client.get("/v1/models").status_code == 200
    refused = client.post(SCORE, content=b"x" * 1000)
    assert refused.status_code == 429
    assert "default-src 'none'" in refused.headers["content-security-policy"]
    assert all(client.get(path).status_code == 200 for path in ("/", "/healthz", "/readyz"))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--allowed-host", "https://a.example.com"], "give a name alone"),
        (["--allowed-host", "a.example.com:443"], "give a name alone"),
        (["--allowed-host", "a.example.com"], "a.example.com, 127.0.0.1 could ask; give --token"),
        (["--path-prefix", "igd"], "give a path such as /inspect"),
        (["--path-prefix", "/a/../b"], "give a path such as /inspect"),
        (["--rate-limit", "0"], "1 request a minute is the least"),
        (["--trusted-proxy", "proxy"], "give an address such as 10.0.0.5"),
    ],
)
def test_flags_that_mean_nothing(
    flags: list[str], says: str, model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(model_file), *flags]) == 2
    assert says in capsys.readouterr().err


@needs("systemd-analyze")
def test_the_units_are_ones(tmp_path: Path) -> None:
    for name in ("igd.service", "igd.socket"):
        unit = (DEPLOY / name).read_text().replace("/opt/igd/bin/igd", "/bin/true")
        (tmp_path / name).write_text(unit)
    command = ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_the_dockerfile_has_no_faults() -> None:
    command = [str(Path(sys.executable).with_name("hadolint")), str(DEPLOY / "Dockerfile")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""
