"""Several batches scored at once say what one after the other says, in the same order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import spotted, stripes, write_images

from igd import IGD
from igd.cpu import chained
from igd.errors import UserError
from igd.inference.predictor import Predictor, Timing


def test_the_same_predictions(fitted: IGD, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predictor, "batch_", 3)
    folder = write_images(tmp_path / "parts", spotted(stripes(20, seed=7)))
    (folder / "004.png").write_text("text")
    paths, skip = sorted(folder.iterdir()), {0, 1, 2, 9}
    one = list(fitted.predictions(paths, skip=skip, keep_images=True))
    monkeypatch.setattr(fitted, "at_once_", 2, raising=False)
    timing = Timing()
    two = list(fitted.predictions(paths, skip=skip, keep_images=True, timing=timing))
    assert len(one) == len(two) == 16
    assert timing.model > 0
    for first, second in zip(one, two, strict=True):
        if isinstance(first, UserError):
            assert str(first) == str(second)
            continue
        assert not isinstance(second, UserError)
        assert (first.name, first.score) == (second.name, second.score)
        np.testing.assert_array_equal(first.map, second.map)


def test_two_are_worked_on_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=30)

    def work(number: int) -> list[int]:
        together.wait()
        return [number, number]

    assert list(chained(work, range(4), 2)) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_error_comes_after_the_results_before_it(at_once: int) -> None:
    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise OSError("the disk")

    found = []
    with pytest.raises(OSError, match="the disk"):
        for each in chained(lambda number: [number], items(), at_once):
            found.append(each)
    assert found == [1, 2, 3]


def test_an_error_of_the_work_is_raised_in_its_turn() -> None:
    def work(number: int) -> list[int]:
        return [6 // number]

    found = []
    with pytest.raises(ZeroDivisionError):
        for each in chained(work, (3, 2, 0, 1), 2):
            found.append(each)
    assert found == [2, 3]
