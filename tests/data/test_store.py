"""Pixels come back as they went in, wherever they were kept, and nothing stays behind."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from igd.data.store import Batches, PixelFile, Pixels, Selection, keep_pixels
from igd.errors import UserError

SQUARES = np.random.default_rng(0).integers(0, 256, (11, 16, 16, 3), dtype=np.uint8)
EXPECTED = torch.from_numpy(SQUARES).permute(0, 3, 1, 2)


@pytest.fixture(params=["tensor", "file", "selection"])
def kept(request: pytest.FixtureRequest) -> Pixels:
    if request.param == "tensor":
        return keep_pixels(SQUARES, 11)
    filed = keep_pixels(SQUARES, 11, held=0)
    if request.param == "file":
        return filed
    return Selection(Selection(filed, torch.arange(11).flip(0)), torch.arange(11).flip(0))


def test_every_kind_serves_the_same_interface(kept: Pixels) -> None:
    assert len(kept) == 11
    assert tuple(kept.shape) == (11, 3, 16, 16)
    indices = torch.tensor([3, 3, 10, 0])
    assert torch.equal(kept[indices], EXPECTED[indices])
    assert kept[indices].dtype == torch.uint8
    batches = kept.split(4)
    assert [len(batch) for batch in batches] == [4, 4, 3]
    assert torch.equal(torch.cat(list(batches)), EXPECTED)


def test_memory_up_to_the_limit_a_file_above_it() -> None:
    assert isinstance(keep_pixels(SQUARES, 11, held=SQUARES.nbytes), torch.Tensor)
    assert isinstance(keep_pixels(SQUARES, 11, held=SQUARES.nbytes - 1), PixelFile)


@pytest.mark.parametrize("held", [2**20, 0])
def test_fewer_images_than_announced(held: int) -> None:
    kept = keep_pixels(SQUARES[:5], 11, held=held)
    assert len(kept) == 5
    assert torch.equal(kept[torch.arange(5)], EXPECTED[:5])


def test_grey_squares_have_one_channel_and_do_not_mix_with_colour() -> None:
    assert tuple(keep_pixels(SQUARES[..., 0], 11).shape) == (11, 1, 16, 16)
    with pytest.raises(UserError, match="grey and in colour"):
        keep_pixels([SQUARES[0], SQUARES[1, :, :, 0]], 2)


def test_a_selection_copies_nothing() -> None:
    pixels = torch.zeros(4, 1, 2, 2, dtype=torch.uint8)
    selection = Selection(pixels, torch.tensor([2, 3]))
    pixels[3] = 7
    assert (selection[torch.tensor([1])] == 7).all()


def test_batches_are_read_when_asked_for() -> None:
    reads = []

    class Noted(Selection):
        def __getitem__(self, indices: torch.Tensor, /) -> torch.Tensor:
            reads.append(indices.tolist())
            return super().__getitem__(indices)

    batches = Batches(Noted(EXPECTED, torch.arange(11)), 6)
    assert len(batches) == 2
    assert reads == []
    next(iter(batches))
    assert reads == [list(range(6))]


def test_the_file_lies_where_it_is_told_and_vanishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("IGD_CACHE", str(cache))
    kept = keep_pixels(SQUARES, 11, held=0)
    assert isinstance(kept, PixelFile)
    assert os.fstat(kept.file.fileno()).st_dev == cache.stat().st_dev
    assert os.fstat(kept.file.fileno()).st_size == SQUARES.nbytes
    kept.file.close()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("broken")])
def test_nothing_stays_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setenv("IGD_CACHE", str(tmp_path))
    opened = []
    temporary = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **place: opened.append(temporary(**place)) or opened[-1]
    )

    def interrupted() -> Iterator[np.ndarray]:
        yield SQUARES[0]
        raise error

    with pytest.raises(type(error)):
        keep_pixels(interrupted(), 11, held=0)
    assert opened[-1].closed
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_noticed_before_and_while_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IGD_CACHE", str(tmp_path))
    with pytest.raises(
        UserError,
        match=r"decoded images need [\d.]+ GB, and [\d.]+ GB are free; free some space.*IGD_CACHE",
    ):
        keep_pixels(SQUARES, 10**15, held=0)

    class Full:
        closed = False

        def write(self, _: object) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            self.closed = True

    full = Full()
    monkeypatch.setattr("igd.data.store.make_folder", lambda folder: folder)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **place: full)
    with pytest.raises(UserError, match=r"can't be written \(No space left on device\).*IGD_CACHE"):
        keep_pixels(SQUARES, 11, held=0)
    assert full.closed


def test_a_file_that_was_cut_off_is_noticed() -> None:
    kept = keep_pixels(SQUARES, 11, held=0)
    assert isinstance(kept, PixelFile)
    kept.file.truncate(1000)
    with pytest.raises(OSError, match="ends too early"):
        kept[torch.tensor([10])]
