"""How far a job is, and how long it will take, for whoever watches it in the database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from igd.deploy.studio.job_store import MOST_SAID, JobStore
from igd.progress import Progress

EVERY = 0.25  # seconds between two writes
LEAST = 0.02  # of a job, from which its speed is known
# What begins so, takes a job from this share of its time to that one; as measured on 100 images.
SHARES = (
    ("reading images", 0.0, 0.03),
    ("extracting features", 0.03, 0.25),
    ("cross-fitting", 0.35, 0.95),
    ("training", 0.05, 0.9),
    ("measuring", 0.9, 0.92),
    ("scaling scores", 0.92, 0.94),
    ("calibrating", 0.94, 0.96),
    ("drawing maps", 0.95, 1.0),
    ("scoring", 0.0, 1.0),
)


class JobProgress(Progress):
    """Writes to a job's row now and then."""

    def __init__(self, store: JobStore, job: int) -> None:
        self.store, self.job = store, job
        self.said: list[str] = []
        self.draw: Callable[[Any, list[str]], None] | None = None  # a first model's maps
        self.share = 0.0  # of the whole job; it never goes back
        self.began: tuple[float, float] | None = (
            None  # when the first step began, and at what share
        )
        self.written = 0.0

    def start(self, total: int, doing: str, done: int = 0) -> None:
        self.doing, self.done, self.total = doing, done, total
        self._advance_share()
        self.began = self.began or (time.monotonic(), self.share)
        self._write(at_once=True)

    def advance(self, count: int = 1, **figures: float) -> None:  # noqa: ARG002 - of a curve
        self.done += count
        self._advance_share()
        self._write()

    def finish(self) -> None:
        self._write(at_once=True)

    def say(self, message: str) -> None:
        self.said = [*self.said, message][-MOST_SAID:]
        self.store.advance(self.job, said=json.dumps(self.said))

    def preview(self, make: Callable[[], tuple[Any, list[str]]]) -> None:
        if self.draw:
            self.draw(*make())

    def unsay(self, part: str) -> None:
        """Take back what has this in it: the page says it in its own words."""
        self.said = [each for each in self.said if part not in each]
        self.store.advance(self.job, said=json.dumps(self.said))

    def _advance_share(self) -> None:
        for begins, low, high in SHARES:
            if self.doing.startswith(begins):
                part = self.done / max(self.total, 1)
                self.share = max(self.share, low + (high - low) * min(part, 1.0))

    def _write(self, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self.written >= EVERY:
            self.written = now
            self.store.advance(
                self.job,
                step=self.doing,
                done=self.done,
                total=self.total,
                share=self.share,
                seconds_left=self._left(now),
            )

    def _left(self, now: float) -> float | None:
        if self.began is None:
            return None
        since, begun_at = self.began
        gained = self.share - begun_at
        return None if gained < LEAST else (now - since) * (1 - self.share) / gained
