"""Progress with time left, for whoever is watching; by default nobody is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from igd.text import visible

Item = TypeVar("Item")


class Progress:
    """Says nothing. The interface of everything that shows progress."""

    def start(self, total: int, doing: str, done: int = 0) -> None: ...

    def advance(self, count: int = 1, **figures: float) -> None: ...

    def finish(self) -> None: ...

    def say(self, message: str) -> None: ...

    def preview(self, make: Callable[[], tuple[Any, list[str]]]) -> None:
        """For whoever shows a first anomaly map: `make` gives a fitted state of a part of the
        images, and the names of the others, the least usual first.
        """

    def track(
        self,
        items: Iterable[Item],
        total: int,
        doing: str,
        size: Callable[[Item], int] | None = None,
    ) -> Iterator[Item]:
        """The same items, counted as they pass; by `size`, where one holds several images."""
        self.start(total, doing)
        try:
            for item in items:
                yield item
                self.advance(size(item) if size else 1)
        finally:
            self.finish()


class LineProgress(Progress):
    """No progress; what must be said goes to standard error."""

    def say(self, message: str) -> None:
        sys.stderr.write(f"igd: {visible(message)}\n")


class TerminalProgress(LineProgress):
    """A bar on standard error."""

    def start(self, total: int, doing: str, done: int = 0) -> None:
        from tqdm import tqdm

        self.bar = tqdm(
            total=total, desc=f"{doing:>24}", initial=done, dynamic_ncols=True, delay=0.5
        )

    def advance(self, count: int = 1, **figures: float) -> None:
        if figures:
            self.bar.set_postfix(
                {name: f"{value:.3f}" for name, value in figures.items()}, refresh=False
            )
        self.bar.update(count)

    def finish(self) -> None:
        self.bar.close()


class LogProgress(LineProgress):
    """For logs: a plain line now and then, and none of what is done in less time than that."""

    EVERY = 5.0  # seconds

    def start(self, total: int, doing: str, done: int = 0) -> None:
        self.total, self.doing, self.done = total, doing, done
        self.begun_at = done
        self.started = self.told = time.monotonic()

    def advance(self, count: int = 1, **figures: float) -> None:
        self.done += count
        now = time.monotonic()
        if now - self.told < self.EVERY or self.done >= self.total:
            return
        self.told = now
        left = (now - self.started) / (self.done - self.begun_at) * (self.total - self.done)
        told = "".join(f", {name} {value:.3f}" for name, value in figures.items())
        self.say(f"{self.doing}: {self.done} of {self.total}, about {left:.0f} s left{told}")

    def finish(self) -> None:
        seconds = time.monotonic() - self.started
        if self.told > self.started:
            self.say(f"{self.doing}: {self.done} of {self.total} in {seconds:.0f} s")
