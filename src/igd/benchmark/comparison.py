"""Our runs as tables: mean and standard deviation over seeds, the paper's figures beside them, and
the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean

from igd.benchmark.benchmark_data import DATA, BenchmarkData
from igd.benchmark.differences import differences_table
from igd.benchmark.field_tables import field_tables
from igd.benchmark.paper import MEAN, Figure, published
from igd.benchmark.result_tables import Cell, ResultTable, bold_row
from igd.benchmark.run import Protocol
from igd.benchmark.run_store import Record
from igd.benchmark.series import UNTRAINED_NOTES, Series, classes_of, half_is_stale, series_of
from igd.benchmark.suites import ABLATION, CONTAMINATED, FULL, SMALL, STANDARD, Variant, paper_name

# Our names for the paper's:
PAPER_PRETRAIN = {
    "contrastive": "ssl",
    "rotation": "ssl",
    "distill": "imagenet",
    "distillation": "imagenet",
}
TITLES = {
    "image_auroc": "image AUROC",
    "accuracy_at_half": "accuracy at threshold 0.5",
    "pixel_auroc_per_image": "pixel AUROC, mean over anomalous images",
}


def tables_of(records: Iterable[Record]) -> list[ResultTable]:
    """All tables that the finished runs can fill."""
    listed = list(records)
    tables: list[ResultTable | None] = []
    for data in DATA.values():
        series = series_of(listed, data.name)
        if not data.classes:
            tables += field_tables(data.name, series)
        else:
            tables += [_class_table(data, metric, series) for metric in data.metrics]
        tables += [
            _robustness_table(data, "small training sets", SMALL, series),
            _robustness_table(data, "contaminated training sets", CONTAMINATED, series),
            _robustness_table(data, "ablation", ABLATION, series),
            differences_table(data, ABLATION.protocols, series),
        ]
    return [table for table in tables if table is not None]


def _class_table(data: BenchmarkData, metric: str, series: Sequence[Series]) -> ResultTable | None:
    """The standard protocol, class by class."""
    shown = [
        each
        for each in series
        if any(each.over_seeds(metric, FULL, [name]) for name in data.classes)
    ]
    if not shown:
        return None
    classes = [name for name in data.classes if any(name in each.classes(FULL) for each in shown)]
    groups = {name.replace("_", " "): [name] for name in classes}
    if len(data.classes) > 1:
        groups[f"mean of {len(classes)}"] = classes
    columns = [
        _Beside(each, data, metric, STANDARD, [(FULL, group) for group in groups.values()])
        for each in shown
    ]
    rows = [
        bold_row(name, [cell for column in columns for cell in column.cells(FULL, group)])
        for name, group in groups.items()
    ]
    title = f"{data.name}: {TITLES[metric]}"
    return _table(title, "normal class", columns, rows, _notes(columns, [FULL], classes))


def _robustness_table(
    data: BenchmarkData, title: str, variant: Variant, series: Sequence[Series]
) -> ResultTable | None:
    """The mean over classes, protocol by protocol; only where something was run that the standard
    table does not show.
    """
    shown = [each for each in series if each.protocols & set(variant.protocols)]
    if variant is ABLATION:
        shown = [each for method in variant.methods for each in shown if each.run.method == method]
        special = any(each.run.method not in SMALL.methods for each in shown)
    else:
        special = any(
            each.protocols & {one for one in variant.protocols if one != FULL} for each in shown
        )
    if not special:
        return None
    protocols = [one for one in variant.protocols if any(one in each.protocols for each in shown)]
    filled = [each.classes(one) for each in shown for one in protocols if one in each.protocols]
    everything = classes_of(data, shown)
    classes = [name for name in everything if all(name in those for those in filled)]
    columns = [
        _Beside(each, data, "image_auroc", variant, [(one, classes) for one in protocols])
        for each in shown
    ]
    rows = [
        bold_row(one.described, [cell for each in columns for cell in each.cells(one, classes)])
        for one in protocols
    ]
    title = f"{data.name}: {title}, mean image AUROC"
    return _table(title, "protocol", columns, rows, _notes(columns, protocols, classes))


class _Beside:
    """A series, the paper's figures for the same method and pre-training, and the difference; only
    the series where the paper has none.
    """

    def __init__(
        self,
        series: Series,
        data: BenchmarkData,
        metric: str,
        variant: Variant,
        shown: Sequence[tuple[Protocol, Sequence[str]]],  # by the rows: mean of classes, protocol
    ) -> None:
        self.series, self.data, self.metric, self.variant = series, data, metric, variant
        self.paper_name = paper_name(series.run.method)
        there = {pretrain for one in variant.protocols for pretrain in self._figures(MEAN, one)}
        if series.other_test_set is not None:
            there = set()  # figures of another test set prove nothing beside these
        own = series.run.settings.get("pretrain", "scratch")
        self.own = PAPER_PRETRAIN.get(own, own)
        self.others = sorted(each for each in there - {self.own} if each)
        self.known = bool(there & {self.own, None})
        self.pretrain = self.own if self.own in there else None
        self.named = f"{self.paper_name}, {self.pretrain}" if self.pretrain else self.paper_name
        same_method = self.known and series.untrained is None
        self.compared = same_method and any(self.published(*each) is not None for each in shown)
        self.header = (
            [series.label, f"paper: {self.named}", "difference"]
            if self.compared
            else [series.label]
        )

    def cells(self, protocol: Protocol, classes: Sequence[str]) -> list[Cell]:
        ours = self.series.over_seeds(self.metric, protocol, classes) if classes else None
        measured = Cell.figure(ours.value, ours.deviation) if ours else Cell("-")
        if not self.compared:
            return [measured]
        theirs = self.published(protocol, classes)
        if ours is None or theirs is None:
            return [measured, Cell("-") if theirs is None else Cell.figure(theirs), Cell("")]
        return [
            measured,
            Cell.figure(theirs),
            Cell(f"{ours.value - theirs:+.3f}", ours.value - theirs),
        ]

    def notes(self, protocols: Sequence[Protocol], classes: Sequence[str]) -> list[str]:
        """Why the paper's figures don't stand beside these, and what they are where that helps."""
        notes = []
        if self.series.untrained:
            what = UNTRAINED_NOTES[self.series.untrained]
            theirs = self._listed(protocols, classes) if self.known else ""
            other = f" The paper's {self.named} is another method{theirs}." if theirs else ""
            notes.append(f"{self.series.label}: {what}.{other}")
        elif self.known and all(self.published(one, classes) is None for one in protocols):
            theirs = self._listed(protocols, self.data.classes)
            if theirs:
                notes.append(f"The paper has no class figures of {self.named}{theirs}.")
        elif not self.known and self.others:
            given = " and ".join(self.others)
            notes.append(
                f"The paper's figures of {self.paper_name} are of other pre-training ({given}) "
                f"than {self.series.label}; they are not compared."
            )
        if self.compared and self.pretrain is None:
            notes.append("This table of the paper does not state its pre-training.")
        return notes

    def _listed(self, protocols: Sequence[Protocol], classes: Sequence[str]) -> str:
        """The paper's means of these classes, or of all where it has none of these."""
        same = {one.described: self.published(one, classes) for one in protocols}
        means = {one.described: self._value(MEAN, one) for one in protocols}
        what, values = "its mean of all classes", means
        if set(classes) != set(self.data.classes) and set(same.values()) - {None}:
            what, values = "its mean of the same classes", same
        known = {name: value for name, value in values.items() if value is not None}
        listed = ", ".join(f"{value:.4f} ({name})" for name, value in known.items())
        return f"; {what}: {listed}" if listed else ""

    def published(self, protocol: Protocol, classes: Sequence[str]) -> float | None:
        """The paper's figure for exactly these classes: its own mean for all of them, else the mean
        of its class figures.
        """
        if set(classes) == set(self.data.classes):
            return self._value(MEAN, protocol)
        values = [self._value(name, protocol) for name in classes]
        known = [value for value in values if value is not None]
        return mean(known) if known and len(known) == len(values) else None

    def _value(self, normal: str, protocol: Protocol) -> float | None:
        figures = self._figures(normal, protocol)
        figure = figures.get(self.pretrain) or figures.get(None)
        return figure.value if figure else None

    def _figures(self, normal: str, protocol: Protocol) -> dict[str | None, Figure]:
        asked = (normal, protocol.training_share, protocol.contamination)
        return published(
            self.data.name, self.metric, self.paper_name, *asked, tables=self.variant.tables
        )


def _table(
    title: str, first: str, columns: Sequence[_Beside], rows: list[list[Cell]], notes: list[str]
) -> ResultTable:
    header = [first, *(name for column in columns for name in column.header)]
    alone = [
        first,
        *(
            f"{name}: {column.series.label}" if name == "difference" else name
            for column in columns
            for name in column.header
        ),
    ]
    return ResultTable(title, header, rows, notes, alone)


def _notes(
    columns: Sequence[_Beside], protocols: Sequence[Protocol], classes: Sequence[str]
) -> list[str]:
    data = columns[0].data
    seeds = {column.series.label: column.series.seeds(protocols) for column in columns}
    every = sorted({seed for those in seeds.values() for seed in those})
    named = ", ".join(map(str, every))
    over = (
        f"Mean ± standard deviation over seeds {named}" if len(every) > 1 else f"One seed ({named})"
    )
    notes = [f"{over}; bold: the best, within 0.5 %."]
    fewer = [
        f"{label} ({', '.join(map(str, those))})"
        for label, those in seeds.items()
        if those != every
    ]
    if fewer:
        notes.append(f"Of fewer seeds: {'; '.join(fewer)}.")
    if len(classes) < len(data.classes):
        shown = ", ".join(classes) or "none in common yet"
        beside = [
            column.published(one, classes)
            for column in columns
            if column.compared
            for one in protocols
        ]
        same = "; the paper's means beside them are of the same" if set(beside) - {None} else ""
        notes.append(f"{len(classes)} of {len(data.classes)} classes ({shown}){same}.")
    for series in (column.series for column in columns):
        if series.other_test_set is not None:
            tested = f"{series.other_test_set:,} of {data.test_images:,} images"
            notes.append(f"{series.label}: not the published test set ({tested}).")
        stale = sum(half_is_stale(record) for record in series.records)
        if stale and columns[0].metric == "accuracy_at_half":
            notes.append(
                f"{series.label}: {stale} runs are left out; their accuracy at 0.5 is from before "
                f"0.5 became the threshold."
            )
        warnings = series.warnings(protocols)
        if warnings:
            notes.append(f"Warnings of training, {series.label}: {'; '.join(warnings)}.")
    notes += [note for column in columns for note in column.notes(protocols, classes)]
    return list(dict.fromkeys(notes))
