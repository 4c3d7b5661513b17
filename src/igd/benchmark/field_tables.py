"""Many small data sets, by method: figures of each set, their mean, the worst set and regret.

Regret is how far a method is below the best method on the same set.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from igd.benchmark.result_tables import Cell, ResultTable, bold_row
from igd.benchmark.series import UNTRAINED_NOTES, Series, Spread, warnings_of
from igd.benchmark.suites import FULL

METRICS = {  # beside each other in the table of a method
    "image_auroc": "image AUROC",
    "miss_rate_at_1_percent": "misses at 1 %",
    "miss_rate_at_5_percent": "misses at 5 %",
    "miss_rate_at_10_percent": "misses at 10 %",
    "false_alarm_rate_at_5_percent": "false alarms at 5 %",
    "miss_rate": "misses, own threshold",
    "false_alarm_rate": "false alarms, own threshold",
    "pixel_auroc": "pixel AUROC, pooled",
    "aupro": "AUPRO",
}
Figures = dict[str, Spread]  # by set


def field_tables(data: str, series: Sequence[Series]) -> list[ResultTable]:
    """Image AUROC of every method on every set; then each method with its misses beside it."""
    shown = [each for each in series if FULL in each.protocols]
    if not shown:
        return []
    single = [_method_table(data, each) for each in shown]
    return [_methods_table(data, shown), *(each for each in single if each)]


def figures_of(series: Series, metric: str) -> Figures:
    """A metric on each set, over seeds."""
    found = {name: series.over_seeds(metric, FULL, [name]) for name in series.classes(FULL)}
    return {name: spread for name, spread in sorted(found.items()) if spread is not None}


def regrets(methods: Sequence[Figures]) -> list[dict[str, float]]:
    """For each method, how far it is below the best of them on each set that all of them have."""
    common = set.intersection(*(set(figures) for figures in methods)) if methods else set()
    best = {name: max(figures[name].value for figures in methods) for name in sorted(common)}
    return [{name: best[name] - figures[name].value for name in best} for figures in methods]


def _methods_table(data: str, series: Sequence[Series]) -> ResultTable:
    columns = [figures_of(each, "image_auroc") for each in series]
    sets = sorted({name for figures in columns for name in figures})
    common = [name for name in sets if all(name in figures for figures in columns)]
    rows = [bold_row(name, [_cell(figures.get(name)) for figures in columns]) for name in sets]
    if common:
        means = [each.over_seeds("image_auroc", FULL, common) for each in series]
        lowest = [min(common, key=lambda name: figures[name].value) for figures in columns]
        rows.append(bold_row(f"mean of {len(common)}", [_cell(spread) for spread in means]))
        worst = zip(columns, lowest, strict=True)
        rows.append(
            [Cell("worst set"), *(_named(figures[name].value, name) for figures, name in worst)]
        )
        if len(series) > 1:
            rows += _regret_rows(regrets(columns))
    seeds = {each.label: each.seeds([FULL]) for each in series}
    every = sorted({seed for those in seeds.values() for seed in those})
    notes = [f"Seeds {_listed(every)}; bold: the best, within 0.5 %."]
    fewer = [f"{label} ({_listed(those)})" for label, those in seeds.items() if those != every]
    if fewer:
        notes.append(f"Of fewer seeds: {'; '.join(fewer)}.")
    if len(common) < len(sets):
        notes.append("Means, worst sets and regret are over the sets that all methods have.")
    return ResultTable(
        f"{data}: image AUROC", ["set", *(each.label for each in series)], rows, notes
    )


def _regret_rows(below: Sequence[dict[str, float]]) -> list[list[Cell]]:
    largest = [max(each, key=lambda name: each[name]) for each in below]
    return [
        [Cell("mean regret"), *(Cell.figure(mean(each.values())) for each in below)],
        [
            Cell("largest regret"),
            *(_named(each[name], name) for each, name in zip(below, largest, strict=True)),
        ],
    ]


def _method_table(data: str, series: Series) -> ResultTable | None:
    """One method: misses at promised rates, and localisation, beside its AUROC; None where it has
    neither.
    """
    columns = {name: figures_of(series, name) for name in METRICS}
    columns = {name: figures for name, figures in columns.items() if figures}
    if len(columns) < 2:
        return None
    sets = sorted(series.classes(FULL))
    rows = []
    for name in sets:
        cells = [_cell(figures.get(name)) for figures in columns.values()]
        rows.append([Cell(name), *cells, Cell(str(_warned(series, name)))])
    means = [_mean(figures, len(sets)) for figures in columns.values()]
    rows.append([Cell(f"mean of {len(sets)}"), *means, Cell(str(_warned(series, *sets)))])
    header = ["set", *(METRICS[name] for name in columns), "runs with warnings"]
    notes = [
        "Misses at x %: anomalous images without an alarm where x % false alarms are promised; own "
        "threshold: the one set in training."
    ]
    if any(len(figures) < len(sets) for figures in columns.values()):
        notes.append(
            "-: no masks, or too few held-out images to promise that rate; a mean over fewer sets "
            "says over how many."
        )
    notes += [f"Warnings of training: {each}." for each in series.warnings([FULL])]
    if series.untrained:
        notes.append(f"{series.label}: {UNTRAINED_NOTES[series.untrained]}.")
    return ResultTable(f"{data}: {series.label}", header, rows, notes)


def _warned(series: Series, *sets: str) -> int:
    return sum(
        bool(warnings_of(record))
        for record in series.records
        if record.run.protocol == FULL and record.run.normal in sets
    )


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _cell(spread: Spread | None) -> Cell:
    return Cell.figure(spread.value, spread.deviation) if spread else Cell("-")


def _named(value: float, name: str) -> Cell:
    return Cell(f"{value:.3f} ({name})", value)


def _mean(figures: Figures, sets: int) -> Cell:
    value = mean(spread.value for spread in figures.values())
    return _named(value, f"{len(figures)} sets") if len(figures) < sets else Cell.figure(value)
