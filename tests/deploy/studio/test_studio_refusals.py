"""What the studio refuses with a sentence: numbers, names and texts that mean nothing here."""

from collections.abc import Callable
from pathlib import Path

import pytest

BEYOND = 10**20  # what no database counts to


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v1/jobs/{BEYOND}"),
        ("POST", f"/v1/jobs/{BEYOND}/stop"),
        ("POST", f"/v1/jobs/{BEYOND}/resume"),
        ("DELETE", f"/v1/jobs/{BEYOND}"),
        ("GET", f"/v1/jobs/{BEYOND}/report"),
        ("GET", f"/v1/jobs/{BEYOND}/picture?name=a&kind=photo"),
        ("GET", f"/v1/sets/{BEYOND}"),
        ("DELETE", f"/v1/sets/{BEYOND}"),
        ("GET", f"/v1/sets/{BEYOND}/images/0/thumbnail"),
        ("GET", f"/v1/sets/0/images/{BEYOND}/thumbnail"),
        ("GET", f"/v1/verdicts/{BEYOND}"),
        ("GET", f"/v1/verdicts/{BEYOND}/image"),
        ("GET", f"/v1/verdicts/{BEYOND}/layer"),
        ("GET", f"/v1/verdicts?before={BEYOND}"),
        ("GET", f"/v1/verdicts.csv?after={BEYOND}"),
        ("GET", f"/v1/verdicts/-{BEYOND}"),
    ],
)
def test_422_a_number_that_no_row_has(opened, method: str, path: str) -> None:
    answer = opened.client.request(method, path)
    assert answer.status_code == 422
    assert "Input should be" in answer.json()["detail"]


def test_422_a_number_beside_a_body(opened, good: bytes) -> None:
    job = {"kind": "calibrate", "model": "parts", "set": BEYOND}
    files = {"images": ("a.png", good, "image/png")}
    for answer in (
        opened.client.post("/v1/jobs", json=job),
        opened.client.post(f"/v1/sets/{BEYOND}/images", files=files),
        opened.client.patch(f"/v1/verdicts/{BEYOND}", json={"truth": "good"}),
    ):
        assert answer.status_code == 422
        assert "Input should be less than" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/sets", '{"history": "\\ud800"}'),
        ("POST", "/v1/jobs", '{"kind": "export", "model": "\\ud800"}'),
        ("POST", "/v1/jobs", '{"kind": "compare", "model": "parts", "other": "\\ud800"}'),
        ("PATCH", "/v1/verdicts/1", '{"truth": "good", "note": "\\ud800"}'),
    ],
)
def test_422_half_of_a_character(opened, method: str, path: str, body: str) -> None:
    json = {"content-type": "application/json"}
    answer = opened.client.request(method, path, content=body, headers=json)
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_404_a_name_that_no_folder_can_have(opening: Callable, tmp_path: Path) -> None:
    opened = opening(data_root=tmp_path)
    for answer in (
        opened.client.get("/v1/folders", params={"path": 300 * "a"}),
        opened.client.post("/v1/sets", json={"folder": 300 * "a"}),
        opened.client.post(
            "/v1/jobs", json={"kind": "report", "model": "parts", "folder": 300 * "a"}
        ),
    ):
        assert answer.status_code == 404
        assert answer.json()["detail"] == "there is no such folder below the data root"


def test_an_upload_has_a_name_that_can_be_said(opened, good: bytes) -> None:
    head = 'Content-Disposition: form-data; name="images"; filename="+2AA-.png"\r\n\r\n'
    body = b"--x\r\n" + head.encode() + good + b"\r\n--x--\r\n"
    kind = {"content-type": "multipart/form-data; boundary=x; charset=utf-7"}
    answer = opened.client.post("/v1/models/parts/inspect", content=body, headers=kind)
    assert answer.json()["images"][0]["name"] == "\\ud800.png"
