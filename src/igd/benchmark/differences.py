"""What each term of the objective is worth: methods that differ in it alone, on the same classes
with the same seeds, and how far the difference could be chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from igd.benchmark.benchmark_data import BenchmarkData
from igd.benchmark.result_tables import Cell, ResultTable
from igd.benchmark.run import Protocol, digest
from igd.benchmark.series import Series, metric_of

Pair = tuple[str, str]
# Each with what it has beside the other: MS-SSIM and MAE for a squared error, the Gaussian anomaly
# classifier, interpolation and critic; then the paper's rivals.
PAIRS: tuple[Pair, ...] = (
    ("rec", "mse"),
    ("rec+gac", "rec"),
    ("igd", "rec+gac"),
    ("dsvdd+rec", "dsvdd"),
    ("igd", "dsvdd"),
    ("igd", "dsvdd+rec"),
)
METRIC = "image_auroc"
LEVEL = 0.95


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's interval of the mean of at least two values. A bootstrap of as few as there are
    classes would promise 95 % and hold 80.
    """
    from scipy.stats import t

    quantile = float(t.ppf((1 + LEVEL) / 2, len(values) - 1))
    spread = quantile * stdev(values) / len(values) ** 0.5
    return mean(values) - spread, mean(values) + spread


@dataclass(frozen=True)
class Difference:
    """What a method has beside another: the mean over classes of the mean over seeds."""

    mean: float
    interval: tuple[float, float] | None  # Student's, over classes; None: there is but one
    better: int  # of the runs
    runs: int

    @property
    def told(self) -> str:
        """The mean, its interval, and how many of the runs are better."""
        between = "" if self.interval is None else " ({:+.3f} to {:+.3f})".format(*self.interval)
        return f"{self.mean:+.3f}{between}, {self.better} of {self.runs}"


def differences_table(
    data: BenchmarkData, protocols: Sequence[Protocol], series: Sequence[Series]
) -> ResultTable | None:
    """One row a pair of methods and settings that both were run with, one column a protocol; only
    where there are classes to take the mean of.
    """
    rows = []
    for one, other, pair in compared(series):
        found = [difference(one, other, protocol) for protocol in protocols]
        if any(each and each.interval for each in found):
            cells = (Cell(each.told, each.mean) if each else Cell("-") for each in found)
            rows.append([Cell(f"{one.label} - {pair[1]}"), *cells])
    if not rows:
        return None
    notes = [
        f"Mean over classes of the mean over seeds, Student's {LEVEL:.0%} interval over classes, "
        "and how many of the runs are better."
    ]
    header = ["difference", *(each.described for each in protocols)]
    title = f"{data.name}: what each term adds, mean image AUROC"
    return ResultTable(title, header, rows, notes)


def compared(series: Sequence[Series]) -> Iterator[tuple[Series, Series, Pair]]:
    """Pairs of methods that were run with the same settings."""
    alike: dict[tuple[str, str], list[Series]] = {}
    for each in series:
        alike.setdefault((_settings(each), _objective(each)), []).append(each)
    for pair in PAIRS:
        for settings in dict.fromkeys(settings for settings, _ in alike):
            # Where a method was run twice, before and after a change, nobody knows which belongs
            # to which.
            ones, others = (alike.get((settings, name), []) for name in pair)
            if len(ones) == len(others) == 1:
                yield ones[0], others[0], pair


def _objective(series: Series) -> str:
    """What a method of this package or of one's own is trained with."""
    return str(series.run.settings.get("objective", series.run.method))


def _settings(series: Series) -> str:
    """All that two methods must have in common to be compared."""
    run = series.run
    settings = {name: value for name, value in run.settings.items() if name != "objective"}
    file = run.method.rpartition(":")[0]  # of a method of one's own
    return digest([settings, file, run.made_by])


def difference(one: Series, other: Series, protocol: Protocol) -> Difference | None:
    """Of the classes and seeds that both have, on the same files; None where there are none."""
    figures = [
        {
            (record.run.normal, record.run.seed, record.run.copy): value
            for record in each.records
            if record.run.protocol == protocol and (value := metric_of(record, METRIC)) is not None
        }
        for each in (one, other)
    ]
    found: dict[str, list[float]] = {}
    for key in figures[0].keys() & figures[1].keys():
        found.setdefault(key[0], []).append(figures[0][key] - figures[1][key])
    if not found:
        return None
    classes = [mean(each) for each in found.values()]
    runs = [value for each in found.values() for value in each]
    between = interval(classes) if len(classes) > 1 else None
    return Difference(mean(classes), between, sum(each > 0 for each in runs), len(runs))
