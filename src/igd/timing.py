"""Where the time went, and how many cores there are to spend it."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass
class Timing:
    """Seconds spent on judging images."""

    decoding: float = 0.0  # summed over the decoding threads, which work beside the model
    model: float = 0.0


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
