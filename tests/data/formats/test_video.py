"""Clips: frames by number, in any order, by their names; cameras; and what is wrong with a file."""

import argparse
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from clips import write_clip

from igd.data.decoding import UnreadableImage, claimed_pixels, find_frames, find_images, read_image
from igd.data.formats import video
from igd.data.formats.video import Clip, Latest, camera_frames
from igd.data.sources import as_source
from igd.errors import UserError

COUNT = 30
GREYS = 8 * np.arange(COUNT)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    frames = np.broadcast_to(GREYS[:, None, None, None], (COUNT, 48, 64, 3)).astype(np.uint8)
    return write_clip(tmp_path / "clip.mp4", frames)


def grey(image: object) -> float:
    return float(np.asarray(image).mean())


def test_frames_are_named_like_files_and_read_like_them(clip: Path) -> None:
    paths = find_frames(clip)
    assert [path.name for path in paths[:2]] == ["clip.mp4#000000", "clip.mp4#000001"]
    assert len(paths) == COUNT
    assert [round(grey(read_image(path)) / 8) for path in paths] == list(range(COUNT))
    assert read_image(paths[3]).size == (64, 48)
    assert claimed_pixels(paths[3]) == 64 * 48
    assert find_frames(paths[3]) == find_images(paths[3]) == [paths[3]]


def test_one_in_so_many_frames(clip: Path) -> None:
    assert [int(path.name[-6:]) for path in find_frames(clip.parent, 12)] == [0, 12, 24]


@pytest.mark.parametrize("order", ["forward", "backward", "mixed"])
def test_any_order_and_several_threads_at_once(clip: Path, order: str) -> None:
    numbers = np.arange(COUNT)
    if order != "forward":
        numbers = numbers[::-1] if order == "backward" else np.random.default_rng(0).permutation(30)
    opened = Clip(clip)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: grey(opened.read(int(number))), numbers))
    np.testing.assert_allclose(found, GREYS[numbers], atol=3)


def test_a_clip_in_order_is_decoded_once(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, starts = Clip(clip), []
    begin = opened._from_the_start
    monkeypatch.setattr(opened, "_from_the_start", lambda: starts.append(1) or begin())
    for number in range(0, COUNT, 3):
        opened.read(number)
    assert len(starts) == 1


def test_a_clip_is_a_source_and_folders_to_learn_from_have_none(clip: Path) -> None:
    source = as_source(clip)
    assert (len(source), source.single) == (COUNT, False)
    with pytest.raises(UserError, match="no images found"):
        as_source(clip.parent)


def test_what_is_wrong_with_a_clip(clip: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match="#000099: the clip has 30 frames"):
        read_image(f"{clip}#000099")
    with pytest.raises(UnreadableImage, match="no such file"):
        read_image(tmp_path / "none.mp4#000001")
    for name, contents in (("text.mp4", b"#EXTM3U\nhttp://127.0.0.1:1/a.ts\n"), ("no.avi", b"")):
        (tmp_path / name).write_bytes(contents)
        (only,) = find_frames(tmp_path / name)  # so that it costs no other image
        with pytest.raises(UnreadableImage, match=rf"{name}: can't be read as a clip"):
            read_image(only)


def test_a_clip_that_changed_is_read_anew(clip: Path) -> None:
    assert len(find_frames(clip)) == COUNT
    write_clip(clip, np.zeros((4, 48, 64, 3), np.uint8))
    assert len(find_frames(clip)) == 4


def test_a_clip_in_place_of_a_camera(clip: Path) -> None:
    assert len(list(camera_frames(str(clip)))) == COUNT


@pytest.mark.parametrize("address", ["77", "/nowhere/at/all"])
def test_a_camera_that_is_not_there(address: str) -> None:
    pytest.importorskip("av", reason="cameras need the extra 'video'")
    with pytest.raises(UserError, match=rf"camera {address}: can't be opened .*; give the number"):
        next(camera_frames(address))


def test_who_is_slower_than_a_camera_passes_over_frames() -> None:
    taken, more = threading.Event(), threading.Event()

    def coming():
        yield "first"
        taken.wait(10)
        yield from ("passed over", "latest")
        more.set()

    frames = iter(Latest(coming()))
    assert next(frames) == "first"
    taken.set()
    assert more.wait(10)
    assert [frame for frame in frames if frame] == ["latest"]


SILENT = """
import sys
from contextlib import closing
from igd.data.formats.video import camera_frames

with closing(camera_frames(sys.argv[1])) as frames:
    assert next(frames) is None
"""


@pytest.fixture
def nobody() -> str:
    """The address of a stream that nobody sends."""
    pytest.importorskip("av", reason="cameras need the extra 'video'")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"udp://127.0.0.1:{taken.getsockname()[1]}"


def test_who_waits_for_a_silent_camera_can_leave(nobody: str) -> None:
    ran = subprocess.run([sys.executable, "-c", SILENT, nobody], check=False, timeout=60)
    assert ran.returncode == 0


def test_a_camera_that_shows_nothing(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "SILENCE", 0.3)
    with pytest.raises(UserError, match=r"can't be opened \(no picture within 0.3 s\)"):
        list(camera_frames(nobody))


def test_a_camera_that_fell_silent_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    av = pytest.importorskip("av", reason="cameras need the extra 'video'")
    silent = av.error.ExitError(1, "silent")
    tries = iter([["a", silent], silent, ConnectionRefusedError(), ["b"]])
    opened = []

    class Container:
        streams = argparse.Namespace(video=[argparse.Namespace()])

        def __init__(self, shown: list) -> None:
            self.shown = shown

        def __enter__(self) -> "Container":
            return self

        def __exit__(self, *_: object) -> None:
            opened.append("closed")

        def decode(self, _: object):
            for each in self.shown:
                if isinstance(each, Exception):
                    raise each
                yield each

    def opening(*_: object, timeout: float, **__: object) -> Container:
        opened.append("tried")
        found = next(tries)
        if isinstance(found, Exception):
            raise found
        return Container(found)

    monkeypatch.setattr(av, "open", opening)
    monkeypatch.setattr(video.time, "sleep", lambda _: None)
    assert list(video._live("rtsp://camera")) == ["a", None, None, None, "b"]
    assert opened == ["tried", "closed", "tried", "tried", "tried", "closed"]


def test_the_thread_of_a_camera_closes_what_it_reads_and_ends() -> None:
    closed_by = []

    def coming():
        try:
            while True:
                yield "frame"
        finally:
            closed_by.append(threading.current_thread())

    latest = Latest(coming())
    assert next(iter(latest)) == "frame"
    latest.close()
    assert closed_by == [latest._thread]
    assert not latest._thread.is_alive()


def test_what_goes_wrong_with_a_camera_is_raised_where_its_frames_are_asked_for() -> None:
    def coming():
        yield "frame"
        raise UserError("no pictures in it")

    with pytest.raises(UserError, match="no pictures"):
        list(Latest(coming()))


def test_without_the_extra_the_way_to_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UserError, match=r"pip install 'igd-anomaly\[video\]'"):
        find_frames(tmp_path / "clip.mp4")
