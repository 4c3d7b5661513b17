"""Images by address: of files, of memory, of a storage that fails now and then."""

from __future__ import annotations

import io
from pathlib import Path

import fsspec
import numpy as np
import pytest
from conftest import stripes, write_images
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image

from igd import IGD
from igd.data import remote
from igd.data.decoding import UnreadableImage
from igd.data.sources import as_source
from igd.errors import UserError


@pytest.fixture
def in_memory() -> str:
    """Four images in fsspec's memory, and a text that is none."""
    storage = fsspec.filesystem("memory")
    for number, image in enumerate(stripes(4)):
        written = io.BytesIO()
        Image.fromarray(image).save(written, format="PNG")
        storage.pipe_file(f"/parts/new/{number}.png", written.getvalue())
    storage.pipe_file("/parts/notes.txt", b"text")
    yield "memory://parts"
    storage.rm("/parts", recursive=True)


def test_addresses_are_read_as_their_files_are(in_memory: str, tmp_path: Path) -> None:
    source = as_source(in_memory)
    assert len(source) == 4
    assert all(name.startswith("memory://") for name in source.names)
    folder = write_images(tmp_path / "parts", stripes(4))
    by_file = as_source(f"file://{folder}")
    for number, path in enumerate(sorted(folder.iterdir())):
        with Image.open(path) as image:
            expected = np.asarray(image.convert("RGB"))
        for each in (source, by_file):
            np.testing.assert_array_equal(np.asarray(each.read(number)), expected)


def test_predictions_of_addresses(fitted: IGD, in_memory: str) -> None:
    listed = as_source(in_memory).names
    alone = fitted.predict(listed[2])
    assert not isinstance(alone, list)
    assert [each.name for each in fitted.predict(listed)] == listed
    assert alone.score == pytest.approx(fitted.predict(stripes(4)[2]).score, abs=1e-6)


def test_storage_gets_a_few_attempts(in_memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PAUSE", 0.0)
    cat, failed = MemoryFileSystem.cat_file, []

    def failing(self: MemoryFileSystem, path: str, **named: int) -> bytes:
        if len(failed) < 2:
            failed.append(path)
            raise ConnectionResetError("reset by peer")
        return cat(self, path, **named)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", failing)
    assert as_source(in_memory).read(0).size == (32, 32)
    assert len(failed) == 2
    failed.clear()
    monkeypatch.setattr(remote, "ATTEMPTS", 2)
    with pytest.raises(UnreadableImage, match="reset by peer"):
        as_source(in_memory).read(0)


def test_what_is_refused(in_memory: str) -> None:
    with pytest.raises(UserError, match="no images found"):
        as_source("memory://nowhere")
    with pytest.raises(UserError, match="not an address that can be read"):
        as_source("nonsense://parts")
    with pytest.raises(UnreadableImage, match="can't be read"):
        remote.read_remote_image("memory://parts/none.png")
