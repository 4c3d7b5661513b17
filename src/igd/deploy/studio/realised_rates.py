"""False alarms and misses as they turned out, by what people said of images."""

from __future__ import annotations

from typing import Any, NamedTuple

from igd.evaluation.confidence import rate_interval


class Counts(NamedTuple):
    """Images that a model inspected."""

    alarms_good: int  # false alarms
    alarms_defect: int
    alarms_open: int  # nobody has said what they are
    passed_good: int
    passed_defect: int  # misses
    passed_open: int


def realised(counts: Counts, promised: float) -> dict[str, Any]:
    """Rates with their 95 % intervals.

    An image without an alarm counts as good unless someone says otherwise, since hardly anybody
    looks at each; an alarm that nobody has looked at counts as nothing. Misses are those among
    the defects that someone found, whatever else slipped through.
    """
    good = counts.alarms_good + counts.passed_good + counts.passed_open
    defects = counts.alarms_defect + counts.passed_defect
    false_alarms = _rate(counts.alarms_good, good)
    return {
        "inspected": sum(counts),
        "open_alarms": counts.alarms_open,
        "promised": promised,
        "false_alarms": false_alarms,
        "misses": _rate(counts.passed_defect, defects),
        "too_many": bool(false_alarms and false_alarms["low"] > promised),
    }


def _rate(count: int, total: int) -> dict[str, Any] | None:
    """None where nothing can be said.

    >>> _rate(1, 20)["low"] < 0.05 < _rate(1, 20)["high"]
    True
    """
    if not total:
        return None
    low, high = rate_interval(count, total)
    return {"count": count, "total": total, "rate": count / total, "low": low, "high": high}
