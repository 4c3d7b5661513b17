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
    """From its making on: the wall time, and the cores' time of a process (by default this one) and
    those below it.
    """

    def __init__(self, process: int | None = None) -> None:
        self.process = process or os.getpid()
        self.started, self.worked = time.perf_counter(), _cores_time(self.process)

    def cost(self, images: int) -> Cost:
        wall, worked = time.perf_counter(), _cores_time(self.process)
        return Cost((wall - self.started) / images, (worked - self.worked) / images)


def _cores_time(process: int) -> float:
    """Seconds that cores spent on a process and all below it, ended ones among them."""
    parents, times = dict[int, int](), dict[int, float]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text().partition(" (")
        except OSError:  # ended meanwhile
            continue
        fields = rest.rpartition(") ")[2].split()
        parents[int(number)] = int(fields[1])
        times[int(number)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below = {process}
    while further := {child for child, parent in parents.items() if parent in below} - below:
        below |= further
    return sum(times.get(each, 0.0) for each in below)
