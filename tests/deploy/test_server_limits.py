"""What a server accepts is bounded in pixels, and comes from its own page or from programs."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from igd import IGD

SCORE = "/v1/models/parts/score"


def webp(side: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (200, 10, 10)).save(buffer, "WEBP", lossless=True)
    return buffer.getvalue()


def files(contents: bytes, count: int) -> list[tuple[str, tuple[str, bytes]]]:
    return [("images", (f"{number}.webp", contents)) for number in range(count)]


def test_many_small_files_of_many_pixels(
    serving: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serving(max_pixels=100 * 100)
    assert client.post(SCORE, files=files(webp(100), 4)).status_code == 200

    def none(*_: object, **__: object) -> None:
        raise AssertionError("an image was decoded")

    monkeypatch.setattr("igd.deploy.server.service.decode_image", none)
    answer = client.post(f"{SCORE}?map=overlay", files=files(webp(100), 5))
    assert answer.status_code == 413
    assert "40,000 are accepted in a request" in answer.json()["detail"]


def test_pixels_are_given_back(serving: Callable[..., TestClient]) -> None:
    client = serving(max_pixels=100 * 100)
    for _ in range(5):
        assert client.post(SCORE, files=files(webp(100), 4)).status_code == 200
        assert client.post(SCORE, files=files(webp(100), 5)).status_code == 413
    assert client.app.state.service.admission.pixels == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://testserver"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://testserver.evil.example"}, 403),
        ({"Origin": "http://testserver:8080"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[bad"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, 200),
    ],
)
def test_pages_of_other_sites_are_refused(
    client: TestClient, good: bytes, headers: dict[str, str], status: int
) -> None:
    assert client.post(SCORE, content=good, headers=headers).status_code == status


def test_scores_that_are_no_numbers_are_no_answer(
    fitted: IGD,
    serving: Callable[..., TestClient],
    good: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored = IGD.score_batch
    monkeypatch.setattr(
        IGD,
        "score_batch",
        lambda detector, pixels: scored(detector, pixels)._replace(
            score=np.full(len(pixels), np.nan)
        ),
    )
    answer = serving().post(SCORE, content=good)
    assert answer.status_code == 503
    assert "damaged" in answer.json()["detail"]


def test_whatever_a_decoder_raises_is_the_senders_fault(
    client: TestClient, good: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object) -> None:
        raise OverflowError("odd")

    monkeypatch.setattr("igd.data.decoding.to_rgb", odd)
    answer = client.post(SCORE, content=good)
    assert answer.status_code == 415
    assert "odd" in answer.json()["detail"]
