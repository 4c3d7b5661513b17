"""Our runs as tables: mean and standard deviation over seeds, the paper's figures beside them, and the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, stdev

from igd.benchmark.datasets import DATA, find_data
from igd.benchmark.methods import find_method
from igd.benchmark.paper import MEAN, Figure, published
from igd.benchmark.protocols import Protocol
from igd.benchmark.runs import Run, digest
from igd.benchmark.store import Record
from igd.benchmark.suites import ABLATION, CONTAMINATED, FULL, SMALL, STANDARD, Variant
from igd.benchmark.table import Cell, Table

PAPER_PRETRAIN = {"contrastive": "ssl", "distill": "imagenet", "distillation": "imagenet"}  # our names for the paper's
TITLES = {
    "image_auroc": "image AUROC",
    "accuracy_at_half": "accuracy at threshold 0.5",
    "pixel_auroc_per_image": "pixel AUROC, mean over anomalous images",
}


@dataclass(frozen=True)
class Spread:
    """A figure over seeds."""

    value: float
    deviation: float | None  # None for one seed


@dataclass(frozen=True)
class Series:
    """The runs of one method with one set of settings on one data set; they differ in class, protocol and seed."""

    method: str
    label: str
    records: tuple[Record, ...]

    @property
    def run(self) -> Run:
        return self.records[0].run

    @cached_property
    def seeds(self) -> list[int]:
        return sorted({record.run.seed for record in self.records})

    def classes(self, protocol: Protocol) -> set[str]:
        return {record.run.normal for record in self.records if record.run.protocol == protocol}

    def over_seeds(self, metric: str, protocol: Protocol, classes: Sequence[str]) -> Spread | None:
        """The mean over these classes, of each seed that has them all."""
        by_seed: dict[int, list[float]] = {}
        for record in self.records:
            value = (record.result or {})["metrics"].get(metric)
            if value is not None and record.run.protocol == protocol and record.run.normal in classes:
                by_seed.setdefault(record.run.seed, []).append(value)
        means = [mean(values) for values in by_seed.values() if len(values) == len(classes)]
        if not means or not classes:
            return None
        return Spread(mean(means), stdev(means) if len(means) > 1 else None)


def series_of(records: Iterable[Record], data: str) -> list[Series]:
    """Finished runs on a data set, grouped by what made them."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        run = record.run
        if record.result is not None and run.data == data:
            groups.setdefault(digest([run.method, run.settings, run.meaning, run.copy, run.made_by]), []).append(record)
    names = {key: _label(group[0].run) for key, group in groups.items()}
    count = Counter(names.values())  # the same name twice: a recipe, the data or igd itself has changed in between
    return [
        Series(
            group[0].run.method,
            names[key] if count[names[key]] == 1 else f"{names[key]}, {group[0].run.made_by} {key[:4]}",
            tuple(group),
        )
        for key, group in groups.items()
    ]


def _label(run: Run) -> str:
    settings = {name: value for name, value in run.settings.items() if name != "objective"}
    recipe, pretrain = settings.pop("recipe", None), settings.pop("pretrain", "scratch")
    parts = [run.method, recipe, pretrain if pretrain != "scratch" else None]
    parts += [f"{name} {value}" for name, value in sorted(settings.items())]
    return ", ".join(part for part in parts if part)


def tables_of(records: Iterable[Record]) -> list[Table]:
    """All tables that the finished runs can fill, in the paper's order of data sets."""
    listed = list(records)
    tables = []
    for data in DATA.values():
        series = series_of(listed, data.name)
        tables += [class_table(data.name, metric, series) for metric in data.metrics]
        tables += [
            robustness_table(data.name, "small training sets", SMALL, series),
            robustness_table(data.name, "contaminated training sets", CONTAMINATED, series),
            robustness_table(data.name, "ablation", ABLATION, series),
        ]
    return [table for table in tables if table is not None]


def class_table(data: str, metric: str, series: Sequence[Series]) -> Table | None:
    """The standard protocol, class by class."""
    shown = [each for each in series if each.over_seeds(metric, FULL, sorted(each.classes(FULL))) is not None]
    every = find_data(data).classes
    classes = [name for name in every if any(name in each.classes(FULL) for each in shown)]
    if not shown:
        return None
    groups = [[name] for name in classes] + ([classes] if len(every) > 1 else [])
    names = [*classes, f"mean of {len(classes)}"][: len(groups)]
    columns = [_Column(each, data, metric, STANDARD) for each in shown]
    rows = [
        [Cell(name.replace("_", " ")), *_bold([cell for column in columns for cell in column.cells(FULL, group, every)])]
        for name, group in zip(names, groups, strict=True)
    ]
    header = ["normal class", *(title for column in columns for title in column.header)]
    notes = _notes(shown, classes, every)
    return Table(f"{data}: {TITLES[metric]}", header, rows, notes)


def robustness_table(data: str, title: str, variant: Variant, series: Sequence[Series]) -> Table | None:
    """The mean over classes, protocol by protocol; shown when a run has a protocol, or a method, that only this table has."""
    metric = "image_auroc"
    own = [each for method in variant.methods for each in series if each.method == method]
    protocols = [one for one in variant.protocols if any(each.classes(one) for each in own)]
    if variant is ABLATION:
        special = any(each.method not in SMALL.methods for each in own)
    else:
        special = any(one != FULL for one in protocols)
    if not special or not protocols:
        return None
    there = [each.classes(one) for each in own for one in protocols if each.classes(one)]
    every = find_data(data).classes
    classes = [name for name in every if all(name in those for those in there)]
    columns = [_Column(each, data, metric, variant) for each in own]
    rows = [
        [Cell(one.described), *_bold([cell for column in columns for cell in column.cells(one, classes, every)])]
        for one in protocols
    ]
    header = ["protocol", *(name for column in columns for name in column.header)]
    return Table(f"{data}: {title}, mean {TITLES[metric]}", header, rows, _notes(own, classes, every))


class _Column:
    """A series, the paper's figures for the same method, and the difference; only the series where the paper has none."""

    def __init__(self, series: Series, data: str, metric: str, variant: Variant) -> None:
        self.series, self.data, self.metric, self.variant = series, data, metric, variant
        self.paper_name = find_method(series.method).paper_name
        wanted = series.run.settings.get("pretrain", "scratch")
        wanted = PAPER_PRETRAIN.get(wanted, wanted)
        there = {key for one in variant.protocols for key in self._figures(MEAN, one)}
        self.has_paper = bool(there)
        preferred = (wanted, None, "imagenet", "ssl", "scratch")
        self.pretrain = next((key for key in preferred if key in there), None)

    def _figures(self, normal: str, protocol: Protocol) -> dict[str | None, Figure]:
        asked = (normal, protocol.training_share, protocol.contamination)
        return published(self.data, self.metric, self.paper_name or "", *asked, tables=self.variant.tables)

    @property
    def header(self) -> list[str]:
        if not self.has_paper:
            return [self.series.label]
        made = f"{self.paper_name}, {self.pretrain}" if self.pretrain else self.paper_name
        return [self.series.label, f"paper: {made}", "difference"]

    def cells(self, protocol: Protocol, classes: Sequence[str], every: Sequence[str]) -> list[Cell]:
        ours = self.series.over_seeds(self.metric, protocol, classes)
        measured = Cell.figure(ours.value, ours.deviation) if ours else Cell("-")
        if not self.has_paper:
            return [measured]
        theirs = self.paper(protocol, classes, every)
        if theirs is None:
            return [measured, Cell("-"), Cell("")]
        difference = Cell(f"{ours.value - theirs:+.3f}", ours.value - theirs) if ours else Cell("")
        return [measured, Cell.figure(theirs), difference]

    def paper(self, protocol: Protocol, classes: Sequence[str], every: Sequence[str]) -> float | None:
        """The paper's figure for exactly these classes: its own mean for all of them, else one made of its class figures."""
        if set(classes) == set(every):
            return self._value(MEAN, protocol)
        values = [self._value(name, protocol) for name in classes]
        known = [value for value in values if value is not None]
        return mean(known) if known and len(known) == len(values) else None

    def _value(self, normal: str, protocol: Protocol) -> float | None:
        figures = self._figures(normal, protocol)
        figure = figures.get(self.pretrain) or figures.get(None)  # class tables often don't repeat the pre-training
        return figure.value if figure else None


WITHIN = 0.005  # 'the best result (within 0.5%)': the paper's rule for bold print


def _bold(cells: Sequence[Cell]) -> list[Cell]:
    """The row with its best figures in bold."""
    rivals = [cell.value for cell in cells if cell.competes and cell.value is not None]
    if len(rivals) < 2:
        return list(cells)
    enough = max(rivals) - WITHIN - 1e-12
    return [cell.in_bold() if cell.competes and (cell.value or 0) >= enough else cell for cell in cells]


def _notes(series: Sequence[Series], classes: Sequence[str], every: Sequence[str]) -> list[str]:
    seeds = sorted({seed for each in series for seed in each.seeds})
    notes = [f"Mean ± standard deviation over seeds ({', '.join(map(str, seeds))}); bold: the best, within 0.5 %."]
    if len(classes) < len(every):
        notes.append(
            f"{len(classes)} of {len(every)} classes: {', '.join(classes)}; the paper's means are of the same classes."
        )
    return notes
