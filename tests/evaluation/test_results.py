"""Raw maps and tables as files."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd.evaluation.results import MapFormat, Table, TableFormat, read_rows, write_map

resource = pytest.importorskip("resource", reason="limits of a process, which Windows has not")
MAP = np.random.default_rng(0).random((40, 40), dtype=np.float32)


@pytest.fixture
def little_room() -> Iterator[None]:
    """Files end after a thousand bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_maps_come_back(tmp_path: Path) -> None:
    write_map(tmp_path / "a.png", MAP, "npy")
    write_map(tmp_path / "b.png", MAP, "png16")
    assert np.array_equal(np.load(tmp_path / "a.png.npy"), MAP)
    grey = np.asarray(Image.open(tmp_path / "b.png.png"), np.float64) / 65535
    assert np.abs(grey - MAP).max() < 1e-5


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_table_without_some_errors_is_otherwise_the_same(
    tmp_path: Path, kind: TableFormat
) -> None:
    pose = {"shift_x": 0.1, "turn": -2.5}
    scored = {"score": 0.1 + 0.2, "p_value": 1e-7, "is_anomalous": True, "regions": [{"x": 1}]}
    rows = [
        {"path": 'a, "b"\n.png', **scored, "error": None, "alignment": pose},
        *(
            {"path": name, **dict.fromkeys(scored), "error": "cut off", "alignment": None}
            for name in ("c.png", "d.png")
        ),
    ]
    for name, some in (("all", rows), ("less", rows[:2])):
        table = Table(tmp_path / name, kind)
        for row in some:
            table.write(row)
    table = Table(tmp_path / "all", kind)
    table.remove_errors({"d.png", rows[0]["path"]})
    assert (tmp_path / "all").read_bytes() == (tmp_path / "less").read_bytes()
    table.write(rows[2])
    assert [row["path"] for row in read_rows(tmp_path / "all", kind)] == [
        row["path"] for row in rows
    ]


@pytest.mark.parametrize("kind", ["npy", "png16"])
def test_a_full_disk_is_noticed(tmp_path: Path, little_room: None, kind: MapFormat) -> None:
    with pytest.raises(OSError, match="File too large"):
        write_map(tmp_path / "a.png", MAP, kind)
    assert not list(tmp_path.iterdir())
