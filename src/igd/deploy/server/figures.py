"""Counters and histograms in Prometheus' text format: few enough to need no library."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

Labels = tuple[tuple[str, str], ...]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Histogram:
    """How many values were at most each bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[next((n for n, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))] += 1
        self.total += value

    def lines(self, name: str, labels: Labels = ()) -> Iterator[str]:
        reached = 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            reached += count
            yield _line(f"{name}_bucket", (*labels, ("le", bound)), reached)
        yield _line(f"{name}_sum", labels, self.total)
        yield _line(f"{name}_count", labels, reached)


class Figures:
    """What the server counts; `waiting` says how many images wait at the moment."""

    def __init__(self) -> None:
        self.waiting: Callable[[], int] = lambda: 0
        self._requests: Counter[Labels] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._scored: Counter[Labels] = Counter()
        self._batches = Histogram(SIZES)
        self._lock = threading.Lock()

    def answered(self, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[("route", route), ("status", str(status))] += 1
            self._seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def scored(self, model: str, images: int) -> None:
        with self._lock:
            self._scored[(("model", model),)] += images

    def batch(self, size: int) -> None:
        with self._lock:
            self._batches.add(size)

    def text(self) -> str:
        with self._lock:
            return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("igd_requests_total", "counter", "Requests answered.")
        yield from (_line("igd_requests_total", labels, count) for labels, count in sorted(self._requests.items()))
        yield from _head("igd_request_seconds", "histogram", "Time from the first byte of a request to its answer.")
        for route, histogram in sorted(self._seconds.items()):
            yield from histogram.lines("igd_request_seconds", (("route", route),))
        yield from _head("igd_images_scored_total", "counter", "Images that got a score.")
        yield from (_line("igd_images_scored_total", labels, count) for labels, count in sorted(self._scored.items()))
        yield from _head("igd_batch_images", "histogram", "Images that were scored together.")
        yield from self._batches.lines("igd_batch_images")
        yield from _head("igd_queue_images", "gauge", "Images that wait to be scored.")
        yield _line("igd_queue_images", (), self.waiting())


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
