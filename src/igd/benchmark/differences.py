"""What each term of the objective is worth: methods that differ in it, on the same classes with the
same seeds, and how far the difference could be chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from igd.benchmark.benchmark_data import BenchmarkData
from igd.benchmark.result_tables import Cell, ResultTable
from igd.benchmark.run import Protocol, digest
from igd.benchmark.series import Series, metric_of

# Each with what it has beside the other: MS-SSIM and MAE for a squared error, the Gaussian anomaly
# classifier, interpolation and critic; then the paper's rivals.
PAIRS = (
    ("rec", "mse"),
    ("rec+gac", "rec"),
    ("igd", "rec+gac"),
    ("dsvdd+rec", "dsvdd"),
    ("igd", "dsvdd"),
    ("igd", "dsvdd+rec"),
)
METRIC = "image_auroc"
DRAWS = 10_000
LEVEL = 95  # per cent of the draws that an interval holds


def interval(groups: Sequence[Sequence[float]], draws: int = DRAWS) -> tuple[float, float]:
    """The bootstrap's 95 % interval of the mean of the groups' means: groups are drawn anew, and
    within each of those the values.
    """
    rng, means = np.random.default_rng(0), []
    for group in groups:
        values = np.asarray(group, float)
        # As many draws of this group as it may be wanted in: once for every place.
        chosen = rng.integers(len(values), size=(len(groups), draws, len(values)))
        means.append(values[chosen].mean(axis=2))
    which = rng.integers(len(groups), size=(len(groups), draws))
    place, draw = np.indices(which.shape)
    drawn = np.stack(means)[which, place, draw].mean(axis=0)
    outside = (100 - LEVEL) / 2
    low, high = np.percentile(drawn, [outside, 100 - outside])
    return float(low), float(high)


def differences_table(
    data: BenchmarkData, protocols: Sequence[Protocol], series: Sequence[Series]
) -> ResultTable | None:
    """One row a pair of methods and settings that both were run with, one column a protocol; only
    where something was run more than once.
    """
    rows = []
    for pair in PAIRS:
        for one, other in combinations(series, 2):
            first, second = (one, other) if _objective(one) == pair[0] else (other, one)
            if (_objective(first), _objective(second)) != pair or _made(first) != _made(second):
                continue
            found = [_differences(first, second, protocol) for protocol in protocols]
            if any(len(values) > 1 for each in found for values in each.values()):
                cells = [_cell(each) for each in found]
                rows.append([Cell(f"{first.label} - {pair[1]}"), *cells])
    if not rows:
        return None
    notes = [
        f"Mean over classes, then its {LEVEL} % interval, from {DRAWS:,} draws of classes and of "
        "seeds within them, and how many of the runs are better."
    ]
    header = ["difference", *(each.described for each in protocols)]
    title = f"{data.name}: what each term adds, mean image AUROC"
    return ResultTable(title, header, rows, notes)


def _objective(series: Series) -> str:
    """What a method of this package or of one's own is trained with."""
    return str(series.run.settings.get("objective", series.run.method))


def _made(series: Series) -> str:
    """All that two methods must have in common to be compared."""
    run = series.run
    settings = {name: value for name, value in run.settings.items() if name != "objective"}
    return digest([settings, run.copy, run.made_by])


def _differences(one: Series, other: Series, protocol: Protocol) -> dict[str, list[float]]:
    """By class, of the seeds that both have."""
    beside = {
        (record.run.normal, record.run.seed): metric_of(record, METRIC)
        for record in other.records
        if record.run.protocol == protocol
    }
    found: dict[str, list[float]] = {}
    for record in one.records:
        value = metric_of(record, METRIC)
        theirs = beside.get((record.run.normal, record.run.seed))
        if record.run.protocol == protocol and value is not None and theirs is not None:
            found.setdefault(record.run.normal, []).append(value - theirs)
    return found


def _cell(found: dict[str, list[float]]) -> Cell:
    if not found:
        return Cell("-")
    groups = list(found.values())
    mean, (low, high) = float(np.mean([np.mean(each) for each in groups])), interval(groups)
    runs = [each for group in groups for each in group]
    better = f"{sum(each > 0 for each in runs)} of {len(runs)}"
    return Cell(f"{mean:+.3f} ({low:+.3f} to {high:+.3f}), {better}", mean)
