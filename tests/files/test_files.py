"""Files are whole or absent."""

from pathlib import Path

import pytest

from igd.errors import UserError
from igd.files import atomic, check_writable, make_folder, write_text


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
