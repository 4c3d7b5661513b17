"""How a grid is going, and when it will be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from igd.benchmark.runs import Run


@dataclass(frozen=True)
class Outlook:
    """A grid at one moment."""

    total: int
    done: int  # those that failed among them
    failed: int
    at_work: list[str]
    seconds_left: float | None  # None until something like it has finished


def seconds_left(
    waiting: Sequence[Run], at_work: Sequence[tuple[Run, float]], took: Sequence[tuple[Run, float]], jobs: int
) -> float | None:
    """What is still to do, by what finished runs took: those most alike, of the same method and data if there are any."""
    if not took:
        return None
    started = sum(max(0.0, _expected(run, took) - spent) for run, spent in at_work)
    whole = sum(_expected(run, took) for run in waiting)
    return (started + whole) / jobs


def _expected(run: Run, took: Sequence[tuple[Run, float]]) -> float:
    alike = [
        [seconds for other, seconds in took if _kind(other) == _kind(run)],
        [seconds for other, seconds in took if (other.data, other.method) == (run.data, run.method)],
        [seconds for _, seconds in took],
    ]
    return mean(next(found for found in alike if found))


def _kind(run: Run) -> tuple[str, str, str]:
    return run.data, run.method, run.meaning + repr(sorted(run.settings.items()))
