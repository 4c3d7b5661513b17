"""Decoding a set: what is lost on the way to 8 bits is said."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd.data.geometry import Geometry
from igd.data.image_set import decode
from igd.data.sources import PIXELS_HELD, Source, as_source
from igd.progress import Progress


class Listening(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def save(path: Path, brightest: int, kind: type[np.uint8] | type[np.uint16]) -> None:
    Image.fromarray(np.linspace(0, brightest, 400).reshape(20, 20).astype(kind)).save(path)


@pytest.mark.parametrize(
    ("saved", "says"),
    [
        (
            [(4080, np.uint16), (3000, np.uint16)],
            ["use no more than 6.2% of their range: about 17 of 256 grey levels remain"],
        ),
        ([(65535, np.uint16), (3000, np.uint16)], []),
        ([(255, np.uint8), (40, np.uint8)], []),
        (
            [(65535, np.uint16), (255, np.uint8)],
            ["1 of 2 images have more than 8 bits, the others not"],
        ),
    ],
)
def test_depth_that_is_lost_is_said(
    tmp_path: Path, saved: list[tuple[int, type]], says: list[str]
) -> None:
    for number, (brightest, kind) in enumerate(saved):
        save(tmp_path / f"{number}.png", brightest, kind)
    progress = Listening()
    decode(as_source(tmp_path), Geometry(16), progress=progress)
    assert len(progress.said) == len(says)
    assert all(part in message for part, message in zip(says, progress.said, strict=True))


def test_large_images_are_read_one_after_another() -> None:
    reading, most, lock = 0, 0, threading.Lock()

    def read(_: int) -> Image.Image:
        nonlocal reading, most
        with lock:
            reading += 1
            most = max(most, reading)
        time.sleep(0.005)
        with lock:
            reading -= 1
        return Image.new("L", (20, 20))

    names = [str(number) for number in range(8)]
    source = Source(names, read, "large ones", pixels=lambda _: PIXELS_HELD)
    assert len(decode(source, Geometry(16), progress=Progress())) == 8
    assert most == 1
