"""Progress with time left, for whoever is watching; by default nobody is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from igd.text import visible

Item = TypeVar("Item")


class Progress:
    """Says nothing. The interface of everything that shows progress."""

    def start(self, total: int, doing: str, done: int = 0) -> None: ...

    def advance(self, **figures: float) -> None: ...

    def finish(self) -> None: ...

    def say(self, message: str) -> None: ...

    def track(self, items: Iterable[Item], total: int, doing: str) -> Iterator[Item]:
        """The same items, counted as they pass."""
        self.start(total, doing)
        try:
            for item in items:
                yield item
                self.advance()
        finally:
            self.finish()


class LineProgress(Progress):
    """No bars; what must be said goes to standard error."""

    def say(self, message: str) -> None:
        sys.stderr.write(f"igd: {visible(message)}\n")


class TerminalProgress(LineProgress):
    """A bar on standard error."""

    def start(self, total: int, doing: str, done: int = 0) -> None:
        from tqdm import tqdm

        self.bar = tqdm(
            total=total, desc=f"{doing:>24}", initial=done, dynamic_ncols=True, delay=0.5
        )

    def advance(self, **figures: float) -> None:
        if figures:
            self.bar.set_postfix(
                {name: f"{value:.3f}" for name, value in figures.items()}, refresh=False
            )
        self.bar.update()

    def finish(self) -> None:
        self.bar.close()
