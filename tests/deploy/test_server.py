"""The HTTP API: what it says is what the detector says, and every refusal has its status and a way out."""

import base64
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import spotted, stripes
from PIL import Image
from starlette.testclient import TestClient

from igd import IGD
from igd.calibration import threshold
from igd.deploy.server import uploads
from igd.deploy.server.app import create_app
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings
from igd.evaluation.overlay import overlay
from igd.judging import Judge, Seen

SCORE = "/v1/models/parts/score"


class Slow(Judge):
    """The same model, which waits for a word before it looks; it remembers how many images it saw at a time."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.go, self.batches = judge, threading.Event(), []
        for name in ("geometry_", "channels_", "smallest_side_", "calibration_scores_", "calibration_peaks_"):
            setattr(self, name, getattr(judge, name))
        self.false_alarm_rate_, self.usual_heat_ = judge.false_alarm_rate_, judge.usual_heat_

    def see(self, pixels: np.ndarray) -> Seen:
        self.batches.append(len(pixels))
        assert self.go.wait(20)
        return self.judge.see(pixels)


class Failing(Slow):
    def see(self, pixels: np.ndarray) -> Seen:
        raise MemoryError("no memory left")


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def detail(answer) -> str:
    assert answer.headers["content-type"] == "application/json"
    return answer.json()["detail"]


def test_an_answer_is_the_prediction(client: TestClient, fitted: IGD, bad: bytes) -> None:
    expected = fitted.predict(np.asarray(Image.open(io.BytesIO(bad))))
    answer = client.post(SCORE, content=bad)
    assert answer.status_code == 200
    (image,) = answer.json()["images"]
    assert image["score"] == pytest.approx(expected.score, abs=1e-6)
    assert image["p_value"] == expected.p_value
    assert image["is_anomalous"] is expected.is_anomalous is True
    assert image["threshold"] == fitted.threshold_
    assert (image["width"], image["height"]) == (32, 32)
    box = image["regions"][0]
    assert box["peak"] == pytest.approx(float(expected.map.max()), abs=1e-6)
    assert box["x"] <= 23 < box["x"] + box["width"]  # the middle of the bright square
    assert box["y"] <= 15 < box["y"] + box["height"]


def test_several_files_are_answered_in_their_order(client: TestClient, good: bytes, bad: bytes) -> None:
    files = [("images", ("ø.png", good)), ("images", ("../../b.png", bad)), ("other", ("c.png", good))]
    images = client.post(SCORE, files=files).json()["images"]
    assert [image["name"] for image in images] == ["ø.png", "../../b.png", "c.png"]
    assert [image["is_anomalous"] for image in images] == [False, True, False]
    assert images[0]["score"] == pytest.approx(images[2]["score"], abs=1e-6)


def test_another_rate_has_its_own_threshold(client: TestClient, fitted: IGD, good: bytes) -> None:
    for rate in (0.03, 0.5):
        answer = client.post(SCORE, content=good, params={"max_false_alarms": rate}).json()
        assert answer["max_false_alarms"] == rate
        (image,) = answer["images"]
        assert image["threshold"] == threshold(fitted.calibration_scores_, rate)
        assert image["is_anomalous"] is (image["p_value"] <= rate)


def test_pictures(client: TestClient, fitted: IGD, bad: bytes) -> None:
    source = Image.open(io.BytesIO(bad))
    expected = fitted.predict(np.asarray(source))

    def shown(kind: str) -> np.ndarray:
        image = client.post(SCORE, content=bad, params={"map": kind}).json()["images"][0]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(image["map"])))).astype(int)

    np.testing.assert_allclose(shown("png16") / 65535, expected.map, atol=2e-5)
    painted = overlay(source, expected.map, fitted.usual_heat_, fitted.pixel_threshold_)
    np.testing.assert_allclose(shown("overlay"), np.asarray(painted), atol=1)
    layer = shown("layer")
    laid_over = layer[..., :3] * layer[..., 3:] / 255 + np.asarray(source.convert("RGB")) * (1 - layer[..., 3:] / 255)
    np.testing.assert_allclose(laid_over, shown("overlay"), atol=2)


def test_a_layer_is_no_larger_than_screens_are(client: TestClient) -> None:
    buffer = io.BytesIO()
    Image.fromarray(stripes(1, side=32)[0]).resize((3000, 1500)).save(buffer, format="PNG")
    (image,) = client.post(SCORE, content=buffer.getvalue(), params={"map": "layer"}).json()["images"]
    assert (image["width"], image["height"]) == (3000, 1500)
    assert Image.open(io.BytesIO(base64.b64decode(image["map"]))).size == (1024, 512)


def test_a_picture_as_the_answer(client: TestClient, bad: bytes) -> None:
    answer = client.post(SCORE, content=bad, headers={"accept": "image/png"})
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (32, 32)
    assert float(answer.headers["igd-score"]) > float(answer.headers["igd-threshold"])
    assert answer.headers["igd-is-anomalous"] == "true"
    assert float(answer.headers["igd-p-value"]) <= 0.05


def test_models_say_what_they_promise(client: TestClient, fitted: IGD) -> None:
    (model,) = client.get("/v1/models").json()["models"]
    assert model["calibration_images"] == 40
    assert model["lowest_rate"] == pytest.approx(1 / 41)
    assert (model["name"], model["side"], model["channels"], model["max_false_alarms"]) == ("parts", 32, 1, 0.05)


def test_401_the_token(serving: Callable[..., TestClient], good: bytes) -> None:
    client = serving(token="secret")
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic secret"},
        {"authorization": "Bearer sécret"},
    ):
        encoded = {name: value.encode() for name, value in headers.items()}
        for answer in (client.get("/v1/models", headers=encoded), client.get("/metrics", headers=encoded)):
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.post(SCORE, content=good, headers=encoded).status_code == 401
    assert client.post(SCORE, content=good, headers={"authorization": "Bearer secret"}).status_code == 200
    assert client.get("/").status_code == client.get("/healthz").status_code == client.get("/readyz").status_code == 200


def test_404_an_unknown_model(client: TestClient, good: bytes) -> None:
    answer = client.post("/v1/models/..%2f..%2fetc%2fpasswd/score", content=good)
    assert answer.status_code == 404
    answer = client.post("/v1/models/nuts/score", content=good)
    assert answer.status_code == 404
    assert detail(answer) == "there is no model 'nuts'; there are: parts"


def test_413_bytes_are_counted_as_they_come(serving: Callable[..., TestClient], good: bytes, monkeypatch) -> None:
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
    answer = client.post(SCORE, files=[("images", ("a.png", bytes(20_000)))], headers={"content-length": "10"})
    assert answer.status_code == 413
    assert client.post(SCORE, content=good).status_code == 200


def test_413_pixels_are_counted_before_decoding(serving: Callable[..., TestClient], good: bytes, monkeypatch) -> None:
    client = serving(max_pixels=32 * 32 - 1)
    monkeypatch.setattr("igd.data.images.to_rgb", lambda image: pytest.fail("it was decoded"))
    answer = client.post(SCORE, files=[("images", ("big.png", good))])
    assert answer.status_code == 413
    assert detail(answer) == "big.png: 32x32 pixels are more than 1,023; send a smaller picture"


def test_413_more_images_than_ever_fit(serving: Callable[..., TestClient], good: bytes) -> None:
    answer = serving(queue=2).post(SCORE, files=[("images", ("a.png", good))] * 3)
    assert answer.status_code == 413
    assert "more than 2 images at once" in detail(answer)


def test_415_not_an_image(client: TestClient, good: bytes) -> None:
    for content in (b"no picture", good[:-40], b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n"):
        answer = client.post(SCORE, files=[("images", ("a.png", good)), ("images", ("b.png", content))])
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
def test_422_parameters(client: TestClient, good: bytes, parameters: dict[str, str], said: str) -> None:
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


def test_422_too_small_and_too_many_for_a_picture(serving: Callable[..., TestClient], fitted: IGD, good: bytes) -> None:
    judge = Slow(fitted)
    judge.smallest_side_ = 33
    answer = serving(judge).post(SCORE, content=good)
    assert answer.status_code == 422
    assert "the shorter side must have at least 33" in detail(answer)
    answer = serving().post(SCORE, files=[("images", ("a.png", good))] * 2, headers={"accept": "image/png"})
    assert answer.status_code == 422
    assert "shows one image, and there are 2; accept application/json" in detail(answer)


def test_429_then_batches_of_what_waited(serving: Callable[..., TestClient], fitted: IGD, good: bytes) -> None:
    judge = Slow(fitted)
    client = serving(judge, queue=4, batch=2)
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(client.post, SCORE, content=good)]
        until(lambda: judge.batches)
        answers += [threads.submit(client.post, SCORE, content=good) for _ in range(3)]
        until(lambda: "igd_queue_images 3" in client.get("/metrics").text)
        refused = client.post(SCORE, content=good)
        judge.go.set()
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert "4 images are waiting already, of at most 4" in detail(refused)
    assert [answer.result().status_code for answer in answers] == [200] * 4
    assert judge.batches == [1, 2, 1]
    assert client.post(SCORE, content=good).status_code == 200  # every place was given back


def test_503_while_loading_and_draining(fitted: IGD, good: bytes) -> None:
    service = Service(Settings())
    with TestClient(create_app(service)) as client:
        for state in ("loaded", "stopped"):
            for answer in (client.get("/readyz"), client.get("/v1/models"), client.post(SCORE, content=good)):
                assert answer.status_code == 503
                assert answer.headers["retry-after"] == "1"
                assert state in detail(answer)
            assert client.get("/healthz").json() == {"status": "alive"}
            service.open({"parts": fitted})
            if state == "loaded":
                assert client.get("/readyz").json() == {"status": "ready"}
            service.drain()


def test_503_when_the_model_fails(serving: Callable[..., TestClient], fitted: IGD, good: bytes) -> None:
    client = serving(Failing(fitted))
    for _ in range(2):  # the scoring thread outlives it
        answer = client.post(SCORE, content=good)
        assert answer.status_code == 503
        assert "the model failed (MemoryError: no memory left)" in detail(answer)


def test_504_forgets_what_nobody_waits_for(serving: Callable[..., TestClient], fitted: IGD, good: bytes) -> None:
    judge = Slow(fitted)
    client = serving(judge, timeout=0.2, queue=2)
    for _ in range(4):  # twice as many as there are places
        answer = client.post(SCORE, content=good)
        assert answer.status_code == 504
        assert "were not scored within 0.2 seconds" in detail(answer)
    assert "igd_queue_images 0" in client.get("/metrics").text
    judge.go.set()
    until(lambda: client.post(SCORE, content=good).status_code == 200)
    assert judge.batches[0] == 1
    assert len(judge.batches) < 5


def test_every_answer_carries_the_security_headers(client: TestClient, good: bytes) -> None:
    for answer in (client.get("/"), client.get("/nothing"), client.post(SCORE, content=good), client.get("/page.js")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_metrics_count(client: TestClient, good: bytes) -> None:
    client.post(SCORE, files=[("images", ("a.png", good))] * 3)
    client.post(SCORE, content=b"no picture")
    client.get("/made/up/path")
    text = client.get("/metrics").text
    assert 'igd_requests_total{route="/v1/models/{name}/score",status="200"} 1' in text
    assert 'igd_requests_total{route="/v1/models/{name}/score",status="415"} 1' in text
    assert 'igd_requests_total{route="other",status="404"} 1' in text
    assert 'igd_request_seconds_count{route="/v1/models/{name}/score"} 2' in text
    assert 'igd_images_scored_total{model="parts"} 3' in text
    assert "igd_batch_images_sum 3" in text
    assert "made" not in text


def test_one_line_of_log_a_request(
    serving: Callable[..., TestClient], good: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    client = serving(token="secret")
    client.post(SCORE, content=good, headers={"authorization": "Bearer secret"})
    client.get("/v1/models", headers={"authorization": "Bearer guessed"})
    captured = capsys.readouterr().err
    scored, refused = map(json.loads, captured.splitlines())
    assert scored.pop("ms") > 0
    assert scored.pop("time")
    assert scored == {"method": "POST", "path": SCORE, "status": 200, "bytes": len(good), "model": "parts"}
    assert refused["status"] == 401
    assert "secret" not in captured
    assert "guessed" not in captured


def test_many_at_once_are_answered_each_with_its_own(client: TestClient, fitted: IGD) -> None:
    images = np.concatenate([stripes(8, seed=21), spotted(stripes(8, seed=22))])
    expected = [prediction.score for prediction in fitted.predict(images)]

    def ask(image: np.ndarray) -> float:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, format="PNG")
        return client.post(SCORE, content=buffer.getvalue()).json()["images"][0]["score"]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, images)) == pytest.approx(expected, abs=1e-5)
