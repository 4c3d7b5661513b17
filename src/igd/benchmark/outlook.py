"""How a grid is going, and when it will be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from igd.benchmark.runs import Run, digest


@dataclass(frozen=True)
class Outlook:
    """A grid at one moment."""

    total: int
    done: int  # those that failed among them
    failed: int
    at_work: list[str]  # the runs, and what is being done for each
    seconds_left: float | None  # None while there is nothing to go by


def seconds_left(
    waiting: Sequence[Run], at_work: Sequence[tuple[Run, float]], took: Sequence[tuple[Run, float]], jobs: int
) -> float | None:
    """What is still to do, by what finished runs took; None while something is to do of which nothing alike has finished."""
    whole = [_expected(run, took) for run in waiting]
    begun = [_expected(run, took, spent) for run, spent in at_work]
    if None in whole or None in begun:
        return None
    return sum(seconds or 0.0 for seconds in (*whole, *begun)) / jobs


def _expected(run: Run, took: Sequence[tuple[Run, float]], spent: float = 0.0) -> float | None:
    """The mean time of runs of the same method with the same settings on the same data, less what is spent already."""
    alike = [seconds for other, seconds in took if _kind(other) == _kind(run)]
    return max(0.0, mean(alike) - spent) if alike else None


def _kind(run: Run) -> str:
    return digest([run.data, run.method, run.meaning, run.settings])
