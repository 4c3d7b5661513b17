"""Files are whole or absent."""

import os
from pathlib import Path

import pytest

from igd.data.reading import read_dataset
from igd.errors import UserError
from igd.files import (
    atomic,
    check_model_path,
    check_writable,
    make_folder,
    read_whole,
    write_text,
)
from igd.files.tensors import read_tensors


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail() -> None:
        with atomic(path) as part:
            part.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (
        tmp_path,
        tmp_path / "none" / "model.igd",
        tmp_path / "file" / "model.igd",
        Path("/proc/model.igd"),
    ):
        with pytest.raises(UserError, match=str(path)):
            check_writable(path)
    with pytest.raises(UserError):
        make_folder(tmp_path / "file" / "results")


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "model.igd"
    abandoned = [tmp_path / f".model.igd.{name}.part" for name in ("abc", "checkpoint.abc")]
    other = tmp_path / ".another.igd.abc.part"
    for part in (*abandoned, other):
        part.write_bytes(b"half")
    with atomic(path) as mine, atomic(tmp_path / "model.igd.checkpoint") as second:
        check_writable(path)
        assert mine.exists()
        assert second.exists()
    assert not any(part.exists() for part in abandoned)
    assert other.exists()


def test_a_device_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/null"), tmp_path / "pipe"):
        with pytest.raises(UserError, match="is a device or a pipe"):
            check_writable(path)


def test_what_is_not_for_this_user_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_whole(tmp_path)
    write_text(tmp_path / "model.igd", "whole")
    assert read_whole(tmp_path / "model.igd") == b"whole"
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read anything
    for read in (read_whole, read_dataset, lambda path: read_tensors(path, "model", 1)):
        with pytest.raises(UserError, match=r"model\.igd: can't be read \(permission denied\)"):
            read(tmp_path / "model.igd")


def test_a_model_file_is_not_named_like_an_exported_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"such as .*parts\.igd"):
        check_model_path(tmp_path / "parts.ONNX")
    check_model_path(tmp_path / "parts.igd")
