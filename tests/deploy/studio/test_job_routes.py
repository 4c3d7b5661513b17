"""Jobs that are taken up again: with the images and the model's name that they were begun with."""

import shutil
import time
from pathlib import Path

import pytest
from conftest import stripes, write_images


@pytest.fixture
def images(opened, tmp_path: Path) -> int:
    """The number of a set that a training can begin with."""
    folder = write_images(tmp_path / "good", stripes(3))
    made = opened.client.post("/v1/sets", json={}).json()
    for path in sorted(folder.iterdir()):
        files = {"images": (path.name, path.read_bytes(), "image/png")}
        opened.client.post(f"/v1/sets/{made['id']}/images", files=files)
    return made["id"]


def training(opened, images: int, **asked: object) -> int:
    job = {"kind": "train", "model": "nuts", "set": images, **asked}
    answer = opened.client.post("/v1/jobs", json=job)
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def resumed(opened, job: int) -> tuple[int, str]:
    """The status, and the state of the job or why it is not taken up."""
    answer = opened.client.post(f"/v1/jobs/{job}/resume")
    return answer.status_code, answer.json().get("state") or answer.json()["detail"]


def test_what_a_stopped_job_needs_stays_however_old_it_is(opened, images: int) -> None:
    job = training(opened, images)
    opened.client.post(f"/v1/jobs/{job}/stop")
    for _ in range(201):
        opened.studio.jobs.finish(opened.studio.jobs.create("export", "parts", {}), "done")
    assert opened.client.delete(f"/v1/sets/{images}").status_code == 409
    assert resumed(opened, job) == (200, "queued")


def test_a_failed_job_is_not_taken_up_without_its_images(opened, images: int) -> None:
    job = training(opened, images)
    opened.studio.jobs.finish(job, "failed", "the region of interest lies outside")
    assert opened.client.delete(f"/v1/sets/{images}").status_code == 200
    status, why = resumed(opened, job)
    assert status == 409
    assert "images of this job were deleted" in why
    assert opened.studio.jobs.get(job)["state"] == "failed"


def test_a_job_whose_images_are_gone_says_so_in_words(opened, images: int) -> None:
    job = training(opened, images)
    opened.studio.sets.delete(images)  # between two looks at them
    opened.studio.queue.start()
    deadline = time.monotonic() + 120
    while opened.studio.jobs.get(job)["state"] in ("queued", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    told = opened.studio.jobs.get(job)
    assert told["state"] == "failed"
    assert told["error"] == f"there is no set of images {images}; it may have been deleted"


def test_a_job_that_goes_on_replaces_no_model_unasked(
    opened, workspace, model_file: Path, images: int
) -> None:
    first = training(opened, images)
    opened.client.post(f"/v1/jobs/{first}/stop")
    second = training(opened, images)
    assert resumed(opened, first)[0] == 409  # the second is to make it
    shutil.copy(model_file, workspace.models / "nuts.igd")
    opened.studio.models.refresh()
    opened.studio.jobs.finish(second, "done")
    status, why = resumed(opened, first)
    assert status == 409
    assert "another model has the name 'nuts'" in why
    agreed = training(opened, images, replace=True)
    opened.client.post(f"/v1/jobs/{agreed}/stop")
    assert resumed(opened, agreed) == (200, "queued")
    opened.client.post(f"/v1/jobs/{agreed}/stop")
    assert opened.client.delete("/v1/studio/models/nuts").status_code == 200
    assert resumed(opened, first) == (200, "queued")
