"""The thread that scores for the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from igd.deploy.server.scorer import Job, Scorer
from igd.inference.batches import DecodedImage
from igd.inference.predictor import Prediction

IMAGE = DecodedImage(np.zeros((8, 8), np.uint8), (8, 8), None)


class Model:
    """One that says the same of every image."""

    batch_ = 16

    def predicted(self, images: Sequence[tuple[str, Any]], _: Any) -> Iterator[Prediction]:
        for name, _ in images:
            yield Prediction(name, 0.5, 0.5, False, np.zeros((8, 8), np.float32), {})


def job(model: Any, name: str) -> Job:
    return Job(model, name, IMAGE)


def test_what_waits_is_scored_before_it_ends() -> None:
    sizes = list[int]()
    model, scorer = Model(), Scorer(3, sizes.append)
    jobs = [job(model, str(number)) for number in range(10)]
    scorer.submit(jobs)
    scorer.close()
    assert [each.prediction.result(0).name for each in jobs] == [each.name for each in jobs]
    assert sum(sizes) == 10
    assert max(sizes) <= 3


def test_a_model_that_fails_leaves_the_others_alone() -> None:
    def fails(*_: Any) -> Any:
        raise MemoryError("no room")

    scorer = Scorer(4, lambda _: None)
    bad = [job(SimpleNamespace(batch_=4, predicted=fails), str(n)) for n in range(2)]
    good, gone = job(Model(), "good"), job(Model(), "gone")
    gone.prediction.cancel()
    scorer.submit([*bad, gone, good])
    for each in bad:
        with pytest.raises(MemoryError, match="no room"):
            each.prediction.result(30)
    assert good.prediction.result(30).name == "good"
    with pytest.raises(CancelledError):
        gone.prediction.result(0)
    scorer.close()
