"""Time two things alternately in one run and print their ratio: the only figure a noisy machine can be trusted with."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 9) -> float:
    """Median time of each over alternating rounds; prints and returns how many times faster ours is."""
    ours(), theirs()  # warm up
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for which, run in (("ours", ours), ("theirs", theirs)):
            started = time.perf_counter()
            run()
            times[which].append(time.perf_counter() - started)
    one, other = median(times["ours"]), median(times["theirs"])
    print(f"{name:<52} {one * 1e3:9.1f} ms {other * 1e3:9.1f} ms   {other / one:5.2f} x")
    return other / one
