"""Where the time went."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Timing:
    """Seconds spent on judging images."""

    decoding: float = 0.0  # summed over the decoding threads, which work beside the model
    model: float = 0.0
