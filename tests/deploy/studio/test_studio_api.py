"""A studio's routes: inspecting, history, models, and what is refused."""

import csv
import io
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes, write_images
from PIL import Image

from igd import IGD
from igd.deploy.server.roles import Role, RoleToken, read_tokens
from igd.deploy.studio.verdicts import Limits
from igd.errors import UserError
from igd.files import atomic


def test_what_was_inspected_is_found_again(opened, good: bytes, bad: bytes) -> None:
    (passed,), (alarm,) = opened.inspect(good, name="a.png"), opened.inspect(bad, name="b_1.png")
    assert (passed["outcome"] in ("normal", "spot"), alarm["is_anomalous"]) == (True, True)
    found = opened.client.get("/v1/verdicts").json()
    assert [each["name"] for each in found["verdicts"]] == ["b_1.png", "a.png"]
    for query, names in {
        "alarms=true": ["b_1.png"],
        "model=parts": ["b_1.png", "a.png"],
        "model=other": [],
        "text=_": ["b_1.png"],  # a sign like any other, no wildcard
        "until=2000-01-01": [],
        f"before={alarm['id']}": ["a.png"],
        f"after={passed['id']}": ["b_1.png"],
    }.items():
        listed = opened.client.get(f"/v1/verdicts?{query}").json()["verdicts"]
        assert [each["name"] for each in listed] == names, query
    layer = opened.client.get(f"/v1/verdicts/{alarm['id']}/layer").content
    assert np.asarray(Image.open(io.BytesIO(layer)))[..., 3].max() > 0
    assert opened.client.get(f"/v1/verdicts/{alarm['id']}/image").content == bad


def test_what_people_say_becomes_realised_rates(opened, good: bytes, bad: bytes) -> None:
    passed = opened.inspect(*[good] * 9)
    alarms = opened.inspect(bad, bad, bad)
    for verdict, truth in ((alarms[0], "defect"), (alarms[1], "good"), (passed[0], "defect")):
        number = verdict["id"]
        said = opened.client.patch(f"/v1/verdicts/{number}", json={"truth": truth, "note": "seen"})
        assert said.json()["truth"] == truth
    (model,) = opened.client.get("/v1/studio/models").json()["models"]
    told = model["realised"]
    assert (told["false_alarms"]["count"], told["false_alarms"]["total"]) == (1, 9)
    assert (told["misses"]["count"], told["misses"]["total"]) == (1, 2)
    assert told["open_alarms"] == 1
    assert told["false_alarms"]["low"] < 1 / 9 < told["false_alarms"]["high"]
    kept = opened.client.post("/v1/sets", json={"history": "parts"}).json()
    assert len(kept["images"]) == 9  # all that pass for good, the false alarm among them
    labelled = opened.client.post("/v1/sets", json={"history": "parts", "labelled": True}).json()
    assert sorted(each["label"] for each in labelled["images"]) == [0, 1, 1]


def test_the_table_holds_no_formula(opened, bad: bytes) -> None:
    (verdict,) = opened.inspect(bad, name="=cmd,x.png")
    opened.client.patch(f"/v1/verdicts/{verdict['id']}", json={"truth": "good", "note": "+1,\n2"})
    (row,) = csv.DictReader(io.StringIO(opened.client.get("/v1/verdicts.csv").text, newline=""))
    assert row["image"] == "'=cmd,x.png"
    assert row["note"] == "'+1,\n2"
    assert (row["person"], row["is_anomalous"]) == ("good", "true")


def test_the_history_is_bounded(opening: Callable, workspace, good: bytes) -> None:
    opened = opening(Limits(verdicts=4, image_bytes=2 * len(good)))
    numbers = [opened.inspect(good)[0]["id"] for _ in range(6)]
    listed = opened.client.get("/v1/verdicts").json()
    assert [each["id"] for each in listed["verdicts"]] == numbers[:1:-1]
    assert [each["kept"] for each in listed["verdicts"]] == [True, True, False, False]
    assert len(list(workspace.inspected.iterdir())) == 2
    assert opened.client.get(f"/v1/verdicts/{numbers[0]}").status_code == 404


def test_only_alarms_of_a_live_camera_are_kept(opened, good: bytes, bad: bytes) -> None:
    assert opened.inspect(good, keep="alarms")[0]["id"] is None
    assert opened.inspect(bad, keep="alarms")[0]["id"] is not None


def test_an_image_of_another_kind_gets_no_tick(opened, good: bytes) -> None:
    with Image.open(io.BytesIO(good)) as image:
        turned = image.resize((32, 48)).convert("RGB")
    buffer = io.BytesIO()
    turned.save(buffer, format="PNG")
    (told,) = opened.inspect(buffer.getvalue())
    assert told["outcome"] not in ("normal", "spot")
    assert len(told["remarks"]) == 2  # its shape, and its colours


def test_a_model_is_downloaded_as_its_file(opened, workspace, model_file: Path) -> None:
    address = "/v1/studio/models/parts"
    answer = opened.client.get(f"{address}/igd")
    assert answer.content == model_file.read_bytes()
    assert 'filename="parts.igd"' in answer.headers["content-disposition"]
    never_exported = opened.client.get(f"{address}/onnx")
    assert never_exported.status_code == 404
    assert "export it first" in never_exported.text
    (workspace.models / "parts.onnx").write_bytes(b"exported")
    assert opened.client.get(f"{address}/onnx").content == b"exported"


def test_a_model_that_changes_on_disk_is_loaded_again(
    opened, workspace, fitted: IGD, good: bytes
) -> None:
    before = opened.inspect(good)[0]
    former = opened.studio.service.predictors["parts"]
    changed = IGD.load(workspace.models / "parts.igd")
    changed.max_false_alarms = 0.5
    changed.save(workspace.models / "parts.igd")
    opened.studio.models.refresh()
    assert opened.studio.service.predictors["parts"] is not former
    assert opened.inspect(good)[0]["threshold"] < before["threshold"]
    (workspace.models / "parts.igd").write_bytes(b"half a copy")
    opened.studio.models.refresh()
    (model,) = opened.client.get("/v1/studio/models").json()["models"]
    assert model["fault"]
    assert model["rate"] == 0.5  # the one before is still asked
    opened.inspect(good)
    assert opened.client.delete("/v1/studio/models/parts").status_code == 200
    assert opened.client.get("/v1/studio/models").json()["models"] == []
    assert opened.client.post("/v1/models/parts/inspect", content=good).status_code == 404


def test_nothing_is_lost_while_a_model_is_replaced(opened, workspace, good: bytes) -> None:
    """Each answer is that of one of the two models, and all of them are in the history."""
    place, other = workspace.models / "parts.igd", workspace.folder / "other.igd"
    changed = IGD.load(place)
    changed.max_false_alarms = 0.5
    changed.save(other)
    files = place.read_bytes(), other.read_bytes()
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(opened.inspect, good) for _ in range(20)]
        turn = 0
        while not all(each.done() for each in asked):
            turn += 1
            with atomic(place) as part:
                part.write_bytes(files[turn % 2])
            opened.studio.models.refresh()
    place.write_bytes(files[0])
    thresholds = {each.result()[0]["threshold"] for each in asked}
    assert turn > 1
    assert thresholds <= {IGD.load(path).threshold_ for path in (place, other)}
    assert opened.client.get("/v1/verdicts").json()["total"] == 20


def test_drift_is_known_again_after_a_restart(opening: Callable, good: bytes, bad: bytes) -> None:
    opened = opening()
    opened.inspect(*[bad] * 40)
    assert "no longer look like" in opened.studio.service.drift["parts"].notice
    again = opening()
    assert "no longer look like" in again.studio.service.drift["parts"].notice


def test_sets_say_what_is_left_out(opened, good: bytes) -> None:
    number = opened.client.post("/v1/sets", json={}).json()["id"]
    with Image.open(io.BytesIO(good)) as image:
        buffer = io.BytesIO()
        image.resize((40, 40)).save(buffer, format="PNG")
    contents = {"a.png": good, "copy.png": good, "b.png": buffer.getvalue(), "c.png": b"text"}
    contents["d.png"] = _png(stripes(1, seed=77)[0])
    for name, content in contents.items():
        files = {"images": (name, content, "image/png")}
        assert opened.client.post(f"/v1/sets/{number}/images", files=files).status_code == 200
    # The same name again is another image.
    files = {"images": ("a.png", _png(stripes(1, seed=78)[0]), "image/png")}
    opened.client.post(f"/v1/sets/{number}/images", files=files)
    told = {each["name"]: each for each in opened.client.get(f"/v1/sets/{number}").json()["images"]}
    assert told["copy.png"]["reason"] == "the same picture as a.png"
    assert told["c.png"]["reason"].startswith("not an image")
    assert told["b.png"]["other_size"]
    assert told["a.png (2)"]["reason"] is None
    assert opened.client.delete(f"/v1/sets/{number}").status_code == 200
    assert opened.client.get(f"/v1/sets/{number}").status_code == 404


def test_nothing_outside_of_the_data_root_is_read(opening: Callable, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_images(root / "good", stripes(3))
    write_images(tmp_path / "secret", stripes(3))
    (root / "way-out").symlink_to(tmp_path / "secret")
    (root / "good" / "link.png").symlink_to(tmp_path / "secret" / "000.png")
    opened = opening(data_root=root)
    listed = opened.client.get("/v1/folders").json()
    assert listed["folders"] == ["good"]
    for path in ("..", "../secret", "way-out", "/etc", str(tmp_path / "secret"), "a\0b"):
        assert opened.client.get("/v1/folders", params={"path": path}).status_code == 403, path
        made = opened.client.post("/v1/sets", json={"folder": path})
        assert made.status_code == 403, path
    made = opened.client.post("/v1/sets", json={"folder": "good"}).json()
    reasons = {each["name"]: each["reason"] for each in made["images"]}
    assert reasons.pop("link.png") == "a link that leads out of the data root"
    assert set(reasons.values()) == {None}
    thumbnail = opened.client.get(f"/v1/sets/{made['id']}/images/0/thumbnail")
    assert thumbnail.headers["content-type"] == "image/jpeg"


@pytest.mark.parametrize("name", ["../parts", "a/b", ".hidden", "", "a b", "<b>", "nul", "x" * 65])
def test_models_have_plain_names(opened, name: str) -> None:
    refused = opened.client.post("/v1/jobs", json={"kind": "train", "model": name, "set": 1})
    assert refused.status_code == 422


def test_a_link_in_the_models_folder_leads_nowhere(opened, workspace, model_file: Path) -> None:
    (workspace.models / "elsewhere.igd").symlink_to(model_file)
    opened.studio.models.refresh()
    assert list(opened.studio.models.files) == ["parts"]


def test_a_model_is_replaced_only_when_asked(opened, good: bytes) -> None:
    number = opened.client.post("/v1/sets", json={}).json()["id"]
    for seed in range(3):
        files = {"images": (f"{seed}.png", _png(stripes(1, seed=seed)[0]), "image/png")}
        opened.client.post(f"/v1/sets/{number}/images", files=files)
    asked = {"kind": "train", "model": "parts", "set": number}
    assert opened.client.post("/v1/jobs", json=asked).status_code == 409
    job = opened.client.post("/v1/jobs", json={**asked, "replace": True}).json()
    assert job["state"] == "queued"
    assert opened.client.delete(f"/v1/sets/{number}").status_code == 409
    assert opened.client.delete("/v1/studio/models/parts").status_code == 409
    stopped = opened.client.post(f"/v1/jobs/{job['id']}/stop").json()
    assert stopped["state"] == "stopped"
    assert opened.client.post(f"/v1/jobs/{job['id']}/resume").json()["state"] == "queued"
    few = {**asked, "replace": True, "excluded": [0]}
    assert "3 are the least" in opened.client.post("/v1/jobs", json=few).json()["detail"]


TOKENS = {role: f"{role.label}-token-of-some-length" for role in Role}


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", "/v1/studio", Role.VIEW),
        ("GET", "/v1/verdicts", Role.VIEW),
        ("POST", "/v1/models/parts/score", Role.INSPECT),
        ("POST", "/v1/models/parts/inspect", Role.INSPECT),
        ("PATCH", "/v1/verdicts/1", Role.INSPECT),
        ("POST", "/v1/sets", Role.TRAIN),
        ("POST", "/v1/jobs", Role.TRAIN),
        ("POST", "/v1/jobs/1/stop", Role.TRAIN),
        ("DELETE", "/v1/studio/models/parts", Role.TRAIN),
        ("DELETE", "/v1/jobs/1", Role.TRAIN),
    ],
)
def test_a_role_may_what_is_less(opening: Callable, method: str, path: str, needed: Role) -> None:
    opened = opening(role_tokens=tuple(RoleToken(role, TOKENS[role]) for role in Role))
    assert opened.client.request(method, path).status_code == 401
    for role in Role:
        bearer = {"Authorization": f"Bearer {TOKENS[role]}"}
        answer = opened.client.request(method, path, headers=bearer)
        assert (answer.status_code == 403) == (role < needed), (role, answer.text)
    assert needed.label in opened.client.request(
        method, path, headers={"Authorization": f"Bearer {TOKENS[Role.VIEW]}"}
    ).json().get("detail", "view")


def test_another_site_may_not_change_anything(opened) -> None:
    refused = opened.client.post("/v1/sets", json={}, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403


def test_token_files() -> None:
    assert read_tokens("a secret of some length\n") == (
        RoleToken(Role.TRAIN, "a secret of some length"),
    )
    with pytest.raises(UserError, match="view, inspect, train"):
        read_tokens("view abc\nadmin def")
    with pytest.raises(UserError, match="twice"):
        read_tokens("view abc\ntrain abc")


def test_every_file_of_the_page_is_served_and_packed(opened) -> None:
    page = Path(__file__).parents[3] / "src" / "igd" / "deploy" / "studio" / "page"
    for file in page.iterdir():
        answer = opened.client.get("/" if file.name == "studio.html" else f"/{file.name}")
        assert answer.content == file.read_bytes()
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_no_markup_is_made_of_text() -> None:
    page = Path(__file__).parents[3] / "src" / "igd" / "deploy" / "studio" / "page"
    for script in page.glob("*.js"):
        written = script.read_text()
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in written, (script.name, way)


def test_a_newer_database_is_left_alone(workspace) -> None:
    from igd.deploy.studio.database import Database

    with workspace.database.opened() as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(UserError, match="newer igd"):
        Database(workspace.database.path)
    shutil.copy(Path(__file__), workspace.database.path)
    for beside in workspace.folder.glob("studio.sqlite-*"):
        beside.unlink()
    with pytest.raises(UserError, match="can't be used"):
        Database(workspace.database.path)


def _png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return buffer.getvalue()
