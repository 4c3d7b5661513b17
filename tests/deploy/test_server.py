"""The HTTP API: what it says is what the detector says."""

import base64
import io
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import spotted, stripes
from PIL import Image
from starlette.testclient import TestClient

from igd import IGD
from igd.evaluation.overlay import layer, overlay
from igd.inference.conformal import threshold

SCORE = "/v1/models/parts/score"


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


def test_several_files_are_answered_in_their_order(
    client: TestClient, good: bytes, bad: bytes
) -> None:
    files = [
        ("images", ("ø.png", good)),
        ("images", ("../../b.png", bad)),
        ("other", ("c.png", good)),
    ]
    images = client.post(SCORE, files=files).json()["images"]
    assert [image["name"] for image in images] == ["ø.png", "../../b.png", "c.png"]
    assert [image["is_anomalous"] for image in images] == [False, True, False]
    assert images[0]["score"] == pytest.approx(images[2]["score"], abs=1e-6)


@pytest.mark.parametrize(
    ("charset", "name"), [("utf-7", "+2AA-.png"), ("unicode_escape", "\\ud800.png")]
)
def test_a_name_that_is_no_text_is_said_as_one(
    client: TestClient, good: bytes, charset: str, name: str
) -> None:
    head = f'Content-Disposition: form-data; name="images"; filename="{name}"\r\n\r\n'
    kind = {"content-type": f"multipart/form-data; boundary=x; charset={charset}"}
    scored, refused = (
        client.post(
            SCORE, headers=kind, content=b"--x\r\n%b%b\r\n--x--\r\n" % (head.encode(), sent)
        )
        for sent in (good, b"no picture")
    )
    assert scored.json()["images"][0]["name"] == "\\ud800.png"
    assert refused.status_code == 415
    assert refused.json()["detail"].startswith("\\ud800.png: ")


def test_another_rate_has_its_own_threshold(client: TestClient, fitted: IGD, good: bytes) -> None:
    for rate in (0.03, 0.5):
        answer = client.post(SCORE, content=good, params={"max_false_alarms": rate}).json()
        assert answer["max_false_alarms"] == rate
        (image,) = answer["images"]
        assert image["threshold"] == threshold(fitted.calibration_.scores, rate)
        assert image["is_anomalous"] is (image["p_value"] <= rate)


def test_pictures(client: TestClient, fitted: IGD, bad: bytes) -> None:
    source = Image.open(io.BytesIO(bad))
    expected = fitted.predict(np.asarray(source))

    def shown(kind: str) -> np.ndarray:
        image = client.post(SCORE, content=bad, params={"map": kind}).json()["images"][0]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(image["map"])))).astype(int)

    np.testing.assert_allclose(shown("png16") / 65535, expected.map, atol=2e-5)
    painted = overlay(source, expected.map, fitted.background_level_, fitted.pixel_threshold_)
    np.testing.assert_allclose(shown("overlay"), np.asarray(painted), atol=1)
    drawn = shown("layer")
    laid_over = drawn[..., :3] * drawn[..., 3:] / 255 + np.asarray(source.convert("RGB")) * (
        1 - drawn[..., 3:] / 255
    )
    np.testing.assert_allclose(laid_over, shown("overlay"), atol=2)


def test_pictures_are_those_of_the_accepted_rate(
    client: TestClient, fitted: IGD, bad: bytes
) -> None:
    source = Image.open(io.BytesIO(bad))
    expected = fitted.predict(np.asarray(source))
    for rate in (0.03, 0.5):
        limit = threshold(fitted.calibration_.peaks, rate)
        colours = expected.map, fitted.background_level_, limit
        drawn = {"overlay": overlay(source, *colours), "layer": layer(*colours)}
        for kind, picture in drawn.items():
            asked = {"max_false_alarms": rate, "map": kind}
            alone = client.post(SCORE, content=bad, params=asked, headers={"accept": "image/png"})
            told = client.post(SCORE, content=bad, params=asked).json()["images"][0]["map"]
            assert base64.b64decode(told) == alone.content
            shown = np.asarray(Image.open(io.BytesIO(alone.content))).astype(int)
            np.testing.assert_allclose(shown, np.asarray(picture), atol=1)


def test_a_layer_is_no_larger_than_screens_are(client: TestClient) -> None:
    buffer = io.BytesIO()
    Image.fromarray(stripes(1, side=32)[0]).resize((3000, 1500)).save(buffer, format="PNG")
    (image,) = client.post(SCORE, content=buffer.getvalue(), params={"map": "layer"}).json()[
        "images"
    ]
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
    assert (model["name"], model["side"], model["channels"], model["max_false_alarms"]) == (
        "parts",
        32,
        1,
        0.05,
    )


def test_every_answer_carries_the_security_headers(client: TestClient, good: bytes) -> None:
    for answer in (
        client.get("/"),
        client.get("/nothing"),
        client.post(SCORE, content=good),
        client.get("/page.js"),
    ):
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


def test_images_that_no_longer_look_like_the_calibration_ones_are_noticed(
    client: TestClient, good: bytes, bad: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    client.post(SCORE, files=[("images", ("a.png", good))] * 20)
    assert 'igd_drift{model="parts"} 0.0' in client.get("/metrics").text
    assert client.get("/v1/models").json()["models"][0]["drift"] is None
    for _ in range(3):
        client.post(SCORE, files=[("images", ("b.png", bad))] * 30)
    text = client.get("/metrics").text
    assert 'igd_drift{model="parts"} 1.0' in text
    share = float(re.search(r'igd_recent_alarm_share{model="parts"} (\S+)', text)[1])
    assert share == pytest.approx(90 / 110)
    assert "igd calibrate" in client.get("/v1/models").json()["models"][0]["drift"]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (notice,) = [line for line in lines if "drift" in line]
    assert notice["model"] == "parts"


def test_a_model_removed_while_it_scores_leaves_no_gauges(
    client: TestClient, good: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = client.app.state.service

    def removed_meanwhile(*_: object) -> bool:
        service.remove("parts")
        return False

    monkeypatch.setattr(service.drift["parts"], "update", removed_meanwhile)
    assert 'igd_drift{model="parts"}' in client.get("/metrics").text
    assert client.post(SCORE, content=good).status_code == 200
    text = client.get("/metrics").text
    assert 'igd_drift{model="parts"}' not in text
    assert 'igd_recent_alarm_share{model="parts"}' not in text
    assert "parts" not in service.drift
    assert client.get("/v1/models").json()["models"] == []


def test_one_line_of_log_a_request(
    serving: Callable[..., TestClient], good: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    client = serving(token="a secret of some length")
    client.post(SCORE, content=good, headers={"authorization": "Bearer a secret of some length"})
    client.get("/v1/models", headers={"authorization": "Bearer guessed"})
    captured = capsys.readouterr().err
    scored, refused = map(json.loads, captured.splitlines())
    assert scored.pop("ms") > 0
    assert scored.pop("time")
    assert scored == {
        "method": "POST",
        "path": SCORE,
        "status": 200,
        "bytes": len(good),
        "model": "parts",
    }
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
