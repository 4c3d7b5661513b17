"""`igd watch`: whatever arrives is scored once, whole, and across restarts."""

import argparse
import csv
import json
import signal
import threading
import time
from pathlib import Path

import pytest
from clips import write_clip
from conftest import spotted, stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main, watch_command
from igd.cli.watch_command import arrivals
from igd.data.formats import video
from igd.evaluation.results import Results


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


def names(out: Path) -> list[str]:
    with (out / "scores.csv").open(newline="") as table:
        return [Path(row["path"]).name for row in csv.DictReader(table)]


def test_no_file_twice_across_restarts(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    command = ["watch", str(model), str(folder), "--out", str(out), "--once"]
    assert main(command) == 0
    write_images(folder, spotted(stripes(2)))
    assert main(command) == 0
    (folder / "002.png").write_bytes((folder / "000.png").read_bytes())
    (folder / "003.png").write_bytes(b"nothing")
    assert main(command) == 0
    assert main(command) == 0
    assert names(out) == ["000.png", "001.png", "002.png", "003.png"]
    assert {path.name for path in out.glob("*.png")} == {f"00{n}.png.png" for n in range(3)}
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 3
    assert told.err.count("igd: unreadable") == 2  # tried again by a later call
    assert told.err.splitlines()[-1] == "igd: 4 images: 3 alarms, 1 unreadable"


def test_results_inside_the_folder_are_not_scored(model: Path, tmp_path: Path) -> None:
    folder = write_images(tmp_path / "in", stripes(2))
    command = ["watch", str(model), str(folder), "--out", str(folder / "out"), "--once"]
    assert main(command) == main(command) == 0
    assert names(folder / "out") == ["000.png", "001.png"]


def test_a_file_that_is_still_being_written_waits(fitted: IGD, tmp_path: Path) -> None:
    folder = write_images(tmp_path / "in", stripes(2))
    options = argparse.Namespace(folder=folder, out=tmp_path / "out", once=False, every=0.001)
    looks = arrivals(options, Results(tmp_path / "out", fitted), lambda: False)
    assert next(looks) == []
    growing = folder / "001.png"
    growing.write_bytes(growing.read_bytes() + b"more")
    assert next(looks) == [folder / "000.png"]
    assert next(looks) == [growing]


def test_every_page_is_scored(model: Path, tmp_path: Path) -> None:
    folder, out = write_images(tmp_path / "in", stripes(1)), tmp_path / "out"
    first, *others = map(Image.fromarray, stripes(3))
    stack = folder / "stack.tif"
    first.save(stack, save_all=True, append_images=others)
    command = ["watch", str(model), str(folder), "--out", str(out), "--once"]
    assert main(command) == main(command) == 0
    pages = [f"stack.tif#00000{n}" for n in range(3)]
    assert names(out) == ["000.png", *pages]
    assert (out / f"{pages[2]}.png").exists()
    table = out / "scores.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:3]))  # a crash
    assert main(command) == 0
    assert names(out) == ["000.png", *pages]


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_what_was_unreadable_is_scored_when_it_is_whole(
    suffix: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = write_images(tmp_path / "in", stripes(1)), tmp_path / "out"
    first, second = map(Image.fromarray, stripes(2))
    pages = {"save_all": True, "append_images": [second]} if suffix == ".tif" else {}
    first.save(tmp_path / f"whole{suffix}", **pages)
    whole, file = (tmp_path / f"whole{suffix}").read_bytes(), folder / f"part{suffix}"
    file.write_bytes(whole[: len(whole) // 2])
    (folder / "other.png").write_bytes(b"nothing")
    command = ["watch", str(model), str(folder), "--out", str(out), "--once"]
    assert main(command) == 0
    assert names(out) == ["000.png", "other.png", file.name]
    file.write_bytes(whole)
    assert main(command) == 0
    parts = [f"{file.name}#00000{n}" for n in range(2)] if pages else [file.name]
    assert names(out) == ["000.png", "other.png", *parts]
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"igd: {2 + len(parts)} images: ")
    assert last.endswith(", 1 unreadable")


def test_a_file_that_changed_after_it_was_unreadable_is_scored_meanwhile(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = write_images(tmp_path / "in", stripes(1)), tmp_path / "out"
    (folder / "part.png").write_bytes(b"nothing")
    rows = []

    def stopping(seconds: float, stop: object) -> bool:
        """In place of waiting: the whole file after some looks at the damaged one."""
        rows.append(names(out) if (out / "scores.csv").stat().st_size else [])
        if len(rows) == 5:
            (folder / "part.png").write_bytes((folder / "000.png").read_bytes())
            (folder / "000.png").touch()  # has its score
        return len(rows) == 9

    monkeypatch.setattr(watch_command, "_stopped_within", stopping)
    assert main(["watch", str(model), str(folder), "--out", str(out)]) == 0
    assert rows[1] == rows[-1] == ["000.png", "part.png"]
    told = capsys.readouterr()
    assert told.err.count("igd: unreadable") == 1
    assert told.err.splitlines()[-1].startswith("igd: 2 images: ")
    assert "unreadable" not in told.err.splitlines()[-1]
    assert len(told.out.splitlines()) == 2


def test_that_clips_are_not_watched_is_said(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, looks = write_images(tmp_path / "in", stripes(1)), iter([False] * 4 + [True])
    (folder / "line.mp4").write_bytes(b"frames")
    monkeypatch.setattr(watch_command, "_stopped_within", lambda *_: next(looks))
    assert main(["watch", str(model), str(folder), "--out", str(tmp_path / "out")]) == 0
    assert names(tmp_path / "out") == ["000.png"]
    said = f"igd: {folder / 'line.mp4'}: clips are not watched; igd predict scores their frames"
    assert capsys.readouterr().err.count(said) == 1


def test_what_arrives_meanwhile_is_scored_until_it_is_stopped(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = write_images(tmp_path / "in", stripes(1)), tmp_path / "out"
    deadline = time.monotonic() + 100
    arrived = threading.Event()

    def stopping(seconds: float, stop: object) -> bool:
        """In place of waiting: a second file after the first row, and an end after the second."""
        if names(out) == ["000.png"] and not arrived.is_set():
            (folder / "new.png").write_bytes((folder / "000.png").read_bytes())
            arrived.set()
        return names(out)[1:] == ["new.png"] or time.monotonic() > deadline

    monkeypatch.setattr(watch_command, "_stopped_within", stopping)
    assert main(["watch", str(model), str(folder), "--out", str(out)]) == 0
    assert names(out) == ["000.png", "new.png"]


def test_a_camera_is_watched_at_a_rate_and_drift_is_said(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clip = write_clip(tmp_path / "line.mp4", spotted(stripes(40, seed=3), size=16))
    command = ["watch", str(model), "--camera", str(clip), "--out", str(tmp_path / "out")]
    assert main([*command, "--every", "0.001", "--max-false-alarms", "0.2", "--json"]) == 0
    told = capsys.readouterr()
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert len(rows) == len({row["path"] for row in rows}) == 40
    assert all(row["is_anomalous"] == (row["p_value"] <= 0.2) for row in rows)
    assert told.err.count("no longer look like the calibration images") == 1
    assert "40 of 40 images are in colour" in told.err
    assert (tmp_path / "out" / f"{rows[0]['path']}.png").exists()
    assert main([*command, "--once"]) == 2  # rows of another rate
    assert "another model or other flags (max false alarms: 0.2, now 0.05)" in (
        capsys.readouterr().err
    )


def test_a_silent_camera_is_said_once_and_can_be_left(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = Image.fromarray(stripes(1)[0])

    def silent(address: str):
        for _ in range(3):
            yield from (frame, None, None, None)
        signal.raise_signal(signal.SIGTERM)
        yield None
        raise AssertionError("asked for more after the signal")

    monkeypatch.setattr(video, "camera_frames", silent)
    monkeypatch.setattr(video, "SILENCE", 0)
    command = ["watch", str(model), "--camera", "rtsp://camera", "--out", str(tmp_path / "out")]
    assert main([*command, "--every", "0.001"]) == 0
    told = capsys.readouterr().err
    assert told.count("camera rtsp://camera: no frame for 0 s; igd waits until one comes") == 3
    assert "3 images" in told


def test_drift_adds_up_over_calls(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    command = ["watch", str(model), str(folder), "--out", str(out), "--once"]
    odd, calls, said = spotted(stripes(60, seed=5)), 6, []
    for call in range(calls):
        write_images(folder / str(call), odd[10 * call : 10 * call + 10])
        assert main(command) == 0
        said.append("no longer look like the calibration" in capsys.readouterr().err)
    assert not said[0]  # ten images are too few by themselves
    assert said[-1]
    assert said == sorted(said)  # as long as there is cause
    assert main(command) == 0  # nothing new, and still so
    assert "of the last 60 images 100% are alarms" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give a folder in which images arrive, or a camera"),
        (["in", "--camera", "0"], "give a folder in which images arrive, or a camera"),
        (["--camera", "77"], "camera 77: can't be opened"),
        (["in", "--max-false-alarms", "2"], "2 is impossible"),
        (["none"], "none: no such folder; igd watch waits"),
        (["in", "--every", "0"], "--every 0: give a number of seconds above 0"),
    ],
)
def test_what_can_not_be_watched(
    words: list[str],
    says: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_images(tmp_path / "in", stripes(1))
    monkeypatch.chdir(tmp_path)
    assert main(["watch", str(model), *words, "--out", "out"]) == 2
    assert says in capsys.readouterr().err
