"""What the campaign counts.

refused   an error that names what is wrong: a `UserError`, exit code 2 (1 where a disk is full), a
          4xx status, an image left out by name
survived  accepted, with the answer of the undamaged input; after a kill, the old file or the new
          one is whole, and going on ends where an undisturbed run ends
unnoticed those of the survived whose answer differs, where nothing in the file could tell: a
          changed byte of a JPEG, WebP, TIFF or BMP that still decodes, or a forged file with a
          right checksum
wrong     any other answer that differs from that of the undamaged input without a word; one that is
          no number in [0, 1]; two entrances that disagree; a lost or half-written file
crashed   a traceback, an error without a sentence, a 5xx status, a process ended by a signal
hung      no answer within the deadline of its part
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

OUTCOMES = ("refused", "survived", "wrong", "crashed", "hung")
EXAMPLES = 12  # of what went wrong, kept with the counts
LONGEST = 300  # characters of one


@dataclass
class Tally:
    """One row of the table."""

    name: str
    tried: int = 0
    refused: int = 0
    survived: int = 0
    unnoticed: int = 0
    wrong: int = 0
    crashed: int = 0
    hung: int = 0
    peak_mb: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, outcome: str, case: str = "", *, unnoticed: bool = False) -> None:
        """Count one case; what went wrong is kept, so that it can be tried again."""
        assert outcome in OUTCOMES, outcome
        self.tried += 1
        setattr(self, outcome, getattr(self, outcome) + 1)
        self.unnoticed += unnoticed
        if outcome in ("wrong", "crashed", "hung") and len(self.examples) < EXAMPLES:
            self.examples.append(f"{outcome}: {case}"[:LONGEST])

    def remember(self, megabytes: float) -> None:
        """The largest resident memory that any process of this row had."""
        self.peak_mb = max(self.peak_mb, round(megabytes))

    def to_json(self) -> dict[str, Any]:
        row = asdict(self)
        del row["started"]
        return {**row, "seconds": round(time.monotonic() - self.started, 1)}
