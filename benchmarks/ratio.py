"""Time two things alternately in one run and print their ratio: the only figure a noisy machine can
be trusted with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def compare(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 9
) -> dict[str, float]:
    """Median milliseconds of each over alternating rounds, and how many times faster ours is:
    printed and returned.
    """
    ours(), theirs()  # warm up
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for which, run in (("ours", ours), ("theirs", theirs)):
            started = time.perf_counter()
            run()
            times[which].append(time.perf_counter() - started)
    one, other = 1e3 * median(times["ours"]), 1e3 * median(times["theirs"])
    print(f"{name:<52} {one:9.1f} ms {other:9.1f} ms   {other / one:5.2f} x", flush=True)
    return {"ours_ms": round(one, 1), "theirs_ms": round(other, 1), "ratio": round(other / one, 2)}
