"""What the server refuses: each with its status, the reason and a way out."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from starlette.testclient import TestClient

from igd import IGD
from igd.deploy.server import uploads
from igd.deploy.server.app import create_app
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings
from igd.inference.predictor import BatchScores, Predictor

SCORE = "/v1/models/parts/score"
TOKEN = "a secret of some length"


class Slow(Predictor):
    """The same model, which waits for a word before it scores; it notes how many images it got at
    a time.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor, self.go, self.batches = predictor, threading.Event(), []
        for name in ("geometry_", "channels_", "smallest_side_", "calibration_"):
            setattr(self, name, getattr(predictor, name))

    def score_batch(self, pixels: np.ndarray) -> BatchScores:
        self.batches.append(len(pixels))
        assert self.go.wait(60)
        return self.predictor.score_batch(pixels)


class Failing(Slow):
    def score_batch(self, pixels: np.ndarray) -> BatchScores:
        raise MemoryError("no memory left")


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def detail(answer) -> str:
    assert answer.headers["content-type"] == "application/json"
    return answer.json()["detail"]


def test_401_the_token(serving: Callable[..., TestClient], good: bytes) -> None:
    client = serving(token=TOKEN)
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer sécret"},
    ):
        encoded = {name: value.encode() for name, value in headers.items()}
        for answer in (
            client.get("/v1/models", headers=encoded),
            client.get("/metrics", headers=encoded),
        ):
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.post(SCORE, content=good, headers=encoded).status_code == 401
    assert (
        client.post(SCORE, content=good, headers={"authorization": f"Bearer {TOKEN}"}).status_code
        == 200
    )
    assert (
        client.get("/").status_code
        == client.get("/healthz").status_code
        == client.get("/readyz").status_code
        == 200
    )


def test_404_an_unknown_model(client: TestClient, good: bytes) -> None:
    answer = client.post("/v1/models/..%2f..%2fetc%2fpasswd/score", content=good)
    assert answer.status_code == 404
    answer = client.post("/v1/models/nuts/score", content=good)
    assert answer.status_code == 404
    assert detail(answer) == "there is no model 'nuts'; there are: parts"


def test_413_bytes_are_counted_as_they_come(
    serving: Callable[..., TestClient], good: bytes, monkeypatch
) -> None:
    client = serving(max_bytes=10_000)
    monkeypatch.setattr(uploads, "LINGER", 0.5)
    sent = 0

    def endless() -> Iterator[bytes]:  # chunked: no length is claimed
        nonlocal sent
        while sent < 200_000:
            sent += 1000
            yield bytes(1000)

    for content in (bytes(20_000), endless()):
        answer = client.post(SCORE, content=content)
        assert answer.status_code == 413
        assert "more than 10,000 bytes; send fewer or smaller images" in detail(answer)
    answer = client.post(
        SCORE, files=[("images", ("a.png", bytes(20_000)))], headers={"content-length": "10"}
    )
    assert answer.status_code == 413
    assert client.post(SCORE, content=good).status_code == 200


def test_413_pixels_are_counted_before_decoding(
    serving: Callable[..., TestClient], good: bytes, monkeypatch
) -> None:
    client = serving(max_pixels=32 * 32 - 1)
    monkeypatch.setattr("igd.data.decoding.to_rgb", lambda image: pytest.fail("it was decoded"))
    answer = client.post(SCORE, files=[("images", ("big.png", good))])
    assert answer.status_code == 413
    assert detail(answer) == "big.png: 32x32 pixels are more than 1,023; send a smaller picture"


def test_413_more_images_than_ever_fit(serving: Callable[..., TestClient], good: bytes) -> None:
    answer = serving(queue=2).post(SCORE, files=[("images", ("a.png", good))] * 3)
    assert answer.status_code == 413
    assert "more than 2 images at once" in detail(answer)


def test_415_not_an_image(client: TestClient, good: bytes) -> None:
    for content in (
        b"no picture",
        good[:-40],
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n",
    ):
        answer = client.post(
            SCORE, files=[("images", ("a.png", good)), ("images", ("b.png", content))]
        )
        assert answer.status_code == 415
        assert detail(answer).startswith("b.png: ")
        assert detail(answer).endswith("send PNG, JPEG, TIFF, BMP or WebP")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"max_false_alarms": "0.001"}, "needs at least 999 calibration images, and there are 40"),
        ({"max_false_alarms": "0.001"}, "accept a rate of 0.0244"),
        ({"max_false_alarms": "1"}, "max_false_alarms: Input should be less than 1"),
        ({"max_false_alarms": "nan"}, "max_false_alarms: "),
        ({"map": "jpeg"}, "map: Input should be 'overlay', 'layer' or 'png16'"),
    ],
)
def test_422_parameters(
    client: TestClient, good: bytes, parameters: dict[str, str], said: str
) -> None:
    answer = client.post(SCORE, content=good, params=parameters)
    assert answer.status_code == 422
    assert said in detail(answer)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("image/png", b"", "the body is empty; send an image"),
        ("multipart/form-data", b"--x\r\n", "the multipart body can't be read"),
        ("multipart/form-data; boundary=x", b"no parts", "the multipart body can't be read"),
        ("multipart/form-data; boundary=x", b"--x--\r\n", "no file in it"),
        ("multipart/form-data; boundary=x; charset=martian", b"--x--\r\n", "no file in it"),
        (
            "multipart/form-data; boundary=x; charset=martian",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
            "no file in it",
        ),
    ],
)
def test_422_bodies(client: TestClient, kind: str, content: bytes, said: str) -> None:
    answer = client.post(SCORE, content=content, headers={"content-type": kind})
    assert answer.status_code == 422
    assert said in detail(answer)


def test_422_too_small_and_too_many_for_a_picture(
    serving: Callable[..., TestClient], fitted: IGD, good: bytes
) -> None:
    predictor = Slow(fitted)
    predictor.smallest_side_ = 33
    answer = serving(predictor).post(SCORE, content=good)
    assert answer.status_code == 422
    assert "the shorter side must have at least 33" in detail(answer)
    answer = serving().post(
        SCORE, files=[("images", ("a.png", good))] * 2, headers={"accept": "image/png"}
    )
    assert answer.status_code == 422
    assert "shows one image, and there are 2; accept application/json" in detail(answer)


def test_429_then_batches_of_what_waited(
    serving: Callable[..., TestClient], fitted: IGD, good: bytes
) -> None:
    predictor = Slow(fitted)
    client = serving(predictor, queue=4, batch=2)
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(client.post, SCORE, content=good)]
        until(lambda: predictor.batches)
        answers += [threads.submit(client.post, SCORE, content=good) for _ in range(3)]
        until(lambda: "igd_queue_images 3" in client.get("/metrics").text)
        refused = client.post(SCORE, content=good)
        predictor.go.set()
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert "4 images are waiting already, of at most 4" in detail(refused)
    assert [answer.result().status_code for answer in answers] == [200] * 4
    assert predictor.batches == [1, 2, 1]
    assert client.post(SCORE, content=good).status_code == 200  # every place was given back


def test_503_while_loading_and_draining(fitted: IGD, good: bytes) -> None:
    service = Service(Settings())
    with TestClient(create_app(service)) as client:
        for state in ("loaded", "stopped"):
            for answer in (
                client.get("/readyz"),
                client.get("/v1/models"),
                client.post(SCORE, content=good),
            ):
                assert answer.status_code == 503
                assert answer.headers["retry-after"] == "1"
                assert state in detail(answer)
            assert client.get("/healthz").json() == {"status": "alive"}
            service.open({"parts": fitted})
            if state == "loaded":
                assert client.get("/readyz").json() == {"status": "ready"}
            service.drain()


def test_503_when_the_model_fails(
    serving: Callable[..., TestClient], fitted: IGD, good: bytes
) -> None:
    client = serving(Failing(fitted))
    for _ in range(2):  # the scoring thread outlives it
        answer = client.post(SCORE, content=good)
        assert answer.status_code == 503
        assert "the model failed (MemoryError: no memory left)" in detail(answer)


def test_504_forgets_what_nobody_waits_for(
    serving: Callable[..., TestClient], fitted: IGD, good: bytes
) -> None:
    predictor = Slow(fitted)
    client = serving(predictor, timeout=0.3, queue=2)
    for _ in range(4):  # twice as many as there is room for, and none is scored before `go`
        answer = client.post(SCORE, content=good)
        assert answer.status_code == 504
        assert "were not scored within 0.3 seconds" in detail(answer)
    assert "igd_queue_images 0" in client.get("/metrics").text
    service = client.app.state.service
    assert service.admission.requests == 0
    # From here on images are really scored, which may take any time.
    service.settings = replace(service.settings, timeout=60)
    begun = len(predictor.batches)
    assert begun <= 1  # the one that was being scored when its time was up
    predictor.go.set()
    assert client.post(SCORE, content=good).status_code == 200
    assert predictor.batches == [1] * (begun + 1)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:80", "[::1]:8000"])
def test_a_local_server_answers_by_its_own_names(
    serving: Callable[..., TestClient], host: str
) -> None:
    client = serving(hosts=("127.0.0.1", "::1", "localhost"))
    assert client.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8000", "", "["])
def test_a_forged_host_name_is_refused(serving: Callable[..., TestClient], host: str) -> None:
    client = serving(hosts=("127.0.0.1", "::1", "localhost"))
    answer = client.get("/v1/models", headers={"Host": host})
    assert answer.status_code == 421
    assert "127.0.0.1" in detail(answer)


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/v1/models", "/openapi.json", "/nowhere", SCORE]
)
def test_head_is_get_without_a_body(client: TestClient, path: str) -> None:
    whole, head = client.get(path), client.head(path)
    assert head.status_code == whole.status_code
    assert head.content == b""
    assert head.headers["content-length"] == str(len(whole.content))
