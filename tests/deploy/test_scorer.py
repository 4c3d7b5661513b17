"""The threads that score for the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from igd.deploy.server.scorer import THREADS, Job, Scorer
from igd.inference.batches import DecodedImage
from igd.inference.predictor import Prediction

IMAGE = DecodedImage(np.zeros((8, 8), np.uint8), (8, 8), None)


class Meeting:
    """A model whose batches end only when so many are scored at once."""

    batch_ = 16

    def __init__(self, together: int) -> None:
        self.barrier, self.sizes = threading.Barrier(together), list[int]()

    def predicted(self, images: Sequence[tuple[str, Any]], _: Any) -> Iterator[Prediction]:
        self.sizes.append(len(images))
        self.barrier.wait(timeout=20)
        for name, _ in images:
            yield Prediction(name, 0.5, 0.5, False, np.zeros((8, 8), np.float32), {})


def job(model: Any, name: str) -> Job:
    return Job(model, name, IMAGE)


def test_batches_are_scored_at_once_and_each_image_once() -> None:
    model, scorer = Meeting(2), Scorer(1, lambda _: None)
    jobs = [job(model, str(number)) for number in range(8)]
    scorer.submit(jobs)
    assert [each.prediction.result(30).name for each in jobs] == [each.name for each in jobs]
    assert model.sizes == [1] * len(jobs)
    scorer.close()


def test_what_waits_is_scored_before_it_ends() -> None:
    sizes = list[int]()
    model, scorer = Meeting(1), Scorer(3, sizes.append)
    jobs = [job(model, str(number)) for number in range(10)]
    scorer.submit(jobs)
    scorer.close()
    assert all(each.prediction.done() for each in jobs)
    assert sum(sizes) == 10
    assert max(sizes) <= 3


def test_a_model_that_fails_leaves_the_others_alone() -> None:
    def fails(*_: Any) -> Any:
        raise MemoryError("no room")

    scorer = Scorer(4, lambda _: None)
    bad = [job(SimpleNamespace(batch_=4, predicted=fails), str(n)) for n in range(THREADS + 1)]
    good, gone = job(Meeting(1), "good"), job(Meeting(1), "gone")
    gone.prediction.cancel()
    scorer.submit([*bad, gone, good])
    for each in bad:
        with pytest.raises(MemoryError, match="no room"):
            each.prediction.result(30)
    assert good.prediction.result(30).name == "good"
    with pytest.raises(CancelledError):
        gone.prediction.result(0)
    scorer.close()
