"""What work costs: wall time, and the time that cores spent on it, which other work on a busy
machine changes less.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """What an image took, in seconds."""

    wall: float
    cores: float  # summed over cores and processes, Ray's own among them


class Meter:
    """From its making on: the wall time, and the cores' time of a process (by default this one),
    with `below` of those that it started too. Read it while they live: what ended is not counted.
    """

    def __init__(self, process: int | None = None, below: bool = False) -> None:
        self.process, self.below = process or os.getpid(), below
        self.started, self.worked = time.perf_counter(), self._worked()

    def cost(self, images: int) -> Cost:
        wall, worked = time.perf_counter() - self.started, self._worked()
        cores = sum(each - self.worked.get(process, 0.0) for process, each in worked.items())
        return Cost(wall / images, cores / images)

    def _worked(self) -> dict[int, float]:
        """Seconds that cores spent on each process so far."""
        parents, times = dict[int, int](), dict[int, float]()
        for path in Path("/proc").glob("[0-9]*/stat" if self.below else f"{self.process}/stat"):
            try:
                number, _, rest = path.read_text().partition(" (")
            except OSError:  # ended meanwhile
                continue
            fields = rest.rpartition(") ")[2].split()
            parents[int(number)] = int(fields[1])
            times[int(number)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        counted = {self.process}
        while further := {child for child, up in parents.items() if up in counted} - counted:
            counted |= further
        return {each: times[each] for each in counted if each in times}
