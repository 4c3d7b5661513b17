"""Sets of images that lie below the data root."""

from collections.abc import Callable
from pathlib import Path

from clips import write_stack
from conftest import stripes

from igd.data.sample import Sample
from igd.deploy.studio.job_worker import _size


def test_pages_of_a_tiff_are_images_of_a_set(opening: Callable, tmp_path: Path) -> None:
    write_stack(tmp_path / "root" / "stack" / "parts.tif", stripes(3))
    opened = opening(data_root=tmp_path / "root")
    made = opened.client.post("/v1/sets", json={"folder": "stack"}).json()
    told = [(each["name"], each["width"], each["reason"]) for each in made["images"]]
    assert told == [(f"parts.tif#{page:06d}", 32, None) for page in range(3)]
    thumbnail = opened.client.get(f"/v1/sets/{made['id']}/images/2/thumbnail")
    assert thumbnail.headers["content-type"] == "image/jpeg"


def test_pages_behind_a_link_out_of_the_data_root_are_not_read(
    opening: Callable, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    secret = write_stack(tmp_path / "secret" / "parts.tif", stripes(2))
    inside = write_stack(root / "stack" / "parts.tif", stripes(2))
    (root / "stack" / "link.tif").symlink_to(secret)
    opened = opening(data_root=root)
    made = opened.client.post("/v1/sets", json={"folder": "stack"}).json()
    assert [each["reason"] for each in made["images"]] == [
        *["a link that leads out of the data root"] * 2,
        *[None] * 2,
    ]
    inside.unlink()
    inside.symlink_to(secret)  # once the set is made
    thumbnail = opened.client.get(f"/v1/sets/{made['id']}/images/2/thumbnail")
    assert thumbnail.status_code == 403


def test_a_training_knows_the_size_of_pages(tmp_path: Path) -> None:
    write_stack(tmp_path / "parts.tif", stripes(2, side=48))
    assert _size(Sample("a page", tmp_path / "parts.tif#000001")) == (48, 48)
