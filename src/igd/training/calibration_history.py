"""What a model file remembers of its calibrations: the one in force, and those before it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from igd.inference.conformal import Calibration

MOST_KEPT = 20  # former calibrations; the oldest go first
KINDS = {"made_at": str, "made_by": str, "source": str, "how": str, "images": int}


@dataclass(frozen=True)
class CalibrationRecord:
    """One calibration in a line."""

    made_at: str  # in UTC
    made_by: str
    source: str  # of its images, as the user named it
    how: str  # 'cross-fitted', 'held out' or 'separate images'
    images: int  # whose scores set the threshold
    false_alarm_rate: float  # that was promised
    threshold: float  # in scores of that time

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def record_of(provenance: dict[str, Any], calibration: Calibration) -> CalibrationRecord:
    """The calibration in force; files of older versions say less about it."""
    made = str(provenance.get("made_at", "unknown"))
    return CalibrationRecord(
        made_at=str(provenance.get("calibrated_at", made)),
        made_by=str(provenance.get("calibrated_by", provenance["made_by"])),
        source=str(provenance.get("calibration_source", provenance.get("source", "unknown"))),
        how=str(provenance.get("calibration", "held out")),
        images=len(calibration.scores),
        false_alarm_rate=calibration.false_alarm_rate,
        threshold=calibration.threshold,
    )


def with_former(
    former: tuple[CalibrationRecord, ...], latest: CalibrationRecord
) -> tuple[CalibrationRecord, ...]:
    """The history when another calibration takes the place of the latest."""
    return (*former, latest)[-MOST_KEPT:]


def read_history(described: Any) -> tuple[CalibrationRecord, ...]:
    """The history in a file's header; raises `ValueError` for what none can be."""
    names = {each.name for each in fields(CalibrationRecord)}
    if not isinstance(described, list) or len(described) > MOST_KEPT:
        raise ValueError("impossible history")
    for each in described:
        possible = (
            isinstance(each, dict)
            and each.keys() == names
            and all(isinstance(each[name], kind) for name, kind in KINDS.items())
            and all(
                isinstance(each[name], float) and math.isfinite(each[name])
                for name in ("false_alarm_rate", "threshold")
            )
        )
        if not possible:
            raise ValueError("impossible history")
    return tuple(CalibrationRecord(**each) for each in described)
