"""Clips and cameras as images, one frame after another.

The extra `video` brings PyAV, which brings FFmpeg. What a clip is, its suffix says: FFmpeg's
guesses would follow playlists to other files and machines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from igd.data.decoding import LARGEST, MODE, PAGES, TooManyPixels, UnreadableImage
from igd.data.frames import Frame
from igd.errors import UserError

CONTAINERS = {".avi": "avi", ".mkv": "matroska", ".webm": "matroska"}  # the others are MP4
OPENED = 4  # clips, kept open at once
SILENCE = 10.0  # seconds without a frame, after which a camera is opened anew
MOMENT = 0.1  # seconds that who asks for a camera's frame waits at most
LEAVING = 1.0  # seconds for a camera's thread to end
GREY = ("gray", "gray10le", "gray12le", "gray16le")


def count_frames(path: Path) -> int:
    """As many as its packets are, which takes no decoding."""
    return _clip(path.resolve(), path.stat().st_mtime_ns).frames


def read_frame(frame: Frame) -> Image.Image:
    """A frame of a clip in 8-bit RGB, upright as the clip says."""
    if not frame.file.is_file():
        raise UnreadableImage(f"{frame.file}: no such file")
    clip = _clip(frame.file.resolve(), frame.file.stat().st_mtime_ns)
    return clip.read(frame.number)


def frame_pixels(frame: Frame) -> int:
    """How many pixels a frame has."""
    try:
        width, height = _clip(frame.file.resolve(), frame.file.stat().st_mtime_ns).size
    except (OSError, UserError):  # decoding will say what is wrong with it
        return 0
    return width * height


@lru_cache(OPENED)
def _clip(path: Path, modified: int) -> Clip:  # noqa: ARG001 - a file that changed is another
    return Clip(path)


class Clip:
    """The frames of a file by number; in order, each is decoded once."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self._wanted: dict[int, Image.Image | None] = {}  # by threads that wait, and what came
        self._next = 0
        self._coming: Iterator[Any] = iter(())
        with _opened(path) as container:
            stream = _stream(container, path)
            self.size: tuple[int, int] = stream.width, stream.height
            self.frames = sum(int(packet.size > 0) for packet in container.demux(stream))
        if self.size[0] * self.size[1] > LARGEST:
            raise TooManyPixels(f"{path}: {self.size[0]}x{self.size[1]} pixels are too many")

    def read(self, number: int) -> Image.Image:
        self._wanted[number] = None
        with self._lock:
            try:
                image = self._wanted[number] or self._decoded_up_to(number)
            finally:
                self._wanted.pop(number, None)
        return image

    def _decoded_up_to(self, number: int) -> Image.Image:
        """The frame, and on the way to it those that others wait for."""
        if number < self._next or not self._next:
            self._next, self._coming = 0, self._from_the_start()
        for decoded in self._coming:
            current, self._next = self._next, self._next + 1
            if current in self._wanted:
                self._wanted[current] = _image(decoded)
            if current == number:
                found = self._wanted[current]
                assert found is not None
                return found
        raise UnreadableImage(f"{self.path}#{number:06d}: the clip has {self._next} frames")

    def _from_the_start(self) -> Iterator[Any]:
        with _opened(self.path) as container:
            try:
                yield from container.decode(_stream(container, self.path))
            except (OSError, ValueError) as error:  # FFmpeg's are among them
                raise UnreadableImage(
                    f"{self.path}: can't be decoded after {self._next} frames ({_reason(error)})"
                ) from None


def camera_frames(address: str) -> Generator[Image.Image | None, None, None]:
    """Frames as a camera has them, until it ends, and None now and then while none comes: a camera
    of this machine by its number, or a stream by its address (rtsp://...), of which those that come
    meanwhile are passed over; or a clip in place of a camera, of which none is.
    """
    if not address.isdecimal() and Path(address).is_file():
        with _opened(Path(address)) as container:
            yield from map(_image, container.decode(_stream(container, address)))
        return
    with closing(Latest(_live(address))) as frames:
        yield from (frame and _image(frame) for frame in frames)


def _live(address: str) -> Generator[Any, None, None]:
    """What a camera shows. One that has been there and fell silent is opened anew until it is back,
    with None before each try.
    """
    place, kind = (f"/dev/video{address}", "v4l2") if address.isdecimal() else (address, None)
    av, known = _av(), False
    while True:
        try:
            with av.open(place, format=kind, timeout=SILENCE) as container:
                known = True
                yield from container.decode(_stream(container, address))
                return
        except UserError:
            raise
        except (OSError, ValueError, av.error.FFmpegError) as error:
            if not known:
                silent = isinstance(error, av.error.ExitError)
                reason = f"no picture within {SILENCE:g} s" if silent else _reason(error)
                raise UserError(
                    f"camera {address}: can't be opened ({reason}); give the number of one of this "
                    f"machine, such as 0 for /dev/video0 (Linux), or a stream's address, such as "
                    f"rtsp://..."
                ) from None
        yield None
        time.sleep(1)


class Latest:
    """Of items that come by themselves, the one that is there when it is asked for, or None after a
    moment without one: who is slower than a camera passes over frames and does not fall behind.
    """

    def __init__(self, coming: Generator[Any, None, None]) -> None:
        self._changed, self._latest = threading.Condition(), None
        self._failure: Exception | None = None
        self._ended = self._closed = False
        self._thread = threading.Thread(target=self._follow, args=(coming,), daemon=True)
        self._thread.start()

    def _follow(self, coming: Generator[Any, None, None]) -> None:
        try:
            # Closed by this thread alone: another would take it from under FFmpeg.
            with closing(coming):
                for item in coming:
                    with self._changed:
                        self._latest = item
                        self._changed.notify()
                    if self._closed:
                        break
        except Exception as error:
            self._failure = error
        with self._changed:
            self._ended = True
            self._changed.notify()

    def __iter__(self) -> Iterator[Any]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._latest is not None or self._ended, MOMENT)
                item, self._latest = self._latest, None
                ended = self._ended
            if item is None and ended:
                if self._failure:
                    raise self._failure
                return
            yield item

    def close(self) -> None:
        """Let the thread end with its next item; one that hangs in a driver is not waited for."""
        self._closed = True
        self._thread.join(LEAVING)


def _opened(path: Path) -> Any:
    av = _av()
    try:
        return av.open(f"file:{path}", format=CONTAINERS.get(path.suffix.lower(), "mp4"))
    except (OSError, ValueError) as error:
        raise UnreadableImage(f"{path}: can't be read as a clip ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _stream(container: Any, name: object) -> Any:
    if not container.streams.video:
        raise UnreadableImage(f"{name}: has no pictures in it")
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    return stream


def _image(frame: Any) -> Image.Image:
    image: Image.Image = frame.to_image()
    if frame.rotation:
        image = image.rotate(frame.rotation, expand=True)
    image.info |= {MODE: "L" if frame.format.name in GREY else "RGB", PAGES: 1}
    return image


def _av() -> Any:
    try:
        import av
    except ModuleNotFoundError:
        raise UserError(
            "clips and cameras need the package av, which is not installed; pip install "
            "'igd-anomaly[video]' brings it"
        ) from None
    av.logging.set_level(None)  # what is wrong with a clip is said by us, by name
    return av
