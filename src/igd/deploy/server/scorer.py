"""One thread that scores; what arrives while it is busy is scored together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from igd.inference.batches import DecodedImage
from igd.inference.predictor import Prediction, Predictor, Timing


@dataclass(frozen=True, eq=False)
class Job:
    """An image that waits for a model's prediction."""

    predictor: Predictor
    name: str
    image: DecodedImage
    prediction: Future[Prediction] = field(default_factory=Future)


class Scorer:
    """Takes jobs from any thread; each job's prediction comes as its future's result."""

    def __init__(self, batch: int, on_batch: Callable[[int], None]) -> None:
        self.batch, self.on_batch = batch, on_batch
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="scorer", daemon=True)
        self._thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        with self._changed:
            self._waiting.extend(jobs)
            self._changed.notify()

    def withdraw(self, jobs: Sequence[Job]) -> None:
        """Forget jobs that nobody waits for any more, as far as they are not being scored."""
        with self._changed:
            for job in jobs:
                if job.prediction.cancel() and job in self._waiting:
                    self._waiting.remove(job)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Score what is waiting, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while jobs := self._next():
            try:
                self.on_batch(len(jobs))
                images = [(job.name, job.image) for job in jobs]
                for job, prediction in zip(
                    jobs, jobs[0].predictor.predicted(images, Timing()), strict=True
                ):
                    assert isinstance(prediction, Prediction)
                    job.prediction.set_result(prediction)
            # Of whatever the model runs in, out of memory among them; the server lives on.
            except Exception as error:
                for job in jobs:
                    if not job.prediction.done():
                        job.prediction.set_exception(error)

    def _next(self) -> list[Job]:
        """Those for the model of the oldest job, in order; empty when there will be none."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return []
                predictor = self._waiting[0].predictor
                same = [job for job in self._waiting if job.predictor is predictor]
                jobs = same[: min(self.batch, predictor.batch_)]
                for job in jobs:
                    self._waiting.remove(job)
                if running := [
                    job for job in jobs if job.prediction.set_running_or_notify_cancel()
                ]:
                    return running
