"""Figure 1 of the paper from our runs: AUC against contamination, and against the size of the
training set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes

from igd.benchmark.benchmark_data import DATA
from igd.benchmark.paper import MEAN, published
from igd.benchmark.run import Protocol
from igd.benchmark.run_store import Record
from igd.benchmark.series import Series, Spread, series_of
from igd.benchmark.suites import CONTAMINATED, SMALL, Variant, paper_name
from igd.evaluation.figures import LINE, PALETTE, legend, new_axes, to_svg

METHODS = ("igd", "dsvdd")  # as in the paper's figure
COLOURS = "abcde"  # of the palette
KEY = (
    "Dots: measured, with one standard deviation over seeds; "
    "dashed: the paper, where it has a mean of the same classes."
)
LEAST_RANGE = 0.1  # of the AUC axis: differences of a thousandth are not to look like cliffs
Points = list[tuple[float, Spread]]
Axis = Callable[[Protocol], float]


def charts_of(records: Iterable[Record]) -> dict[str, tuple[str, str]]:
    """Charts by file name, each with its caption; those for which there are runs at two points at
    least.
    """
    listed, charts = list(records), {}
    for data in DATA.values():
        series = [each for each in series_of(listed, data.name) if each.run.method in METHODS][
            : len(COLOURS)
        ]
        for name, variant, axis, x_label in (
            ("contaminated", CONTAMINATED, _contamination, "test anomalies in the training set, %"),
            ("small", SMALL, _share, "share of the training set, %"),
        ):
            drawn = _chart(data.name, series, variant, axis, x_label)
            if drawn:
                made = " and ".join(dict.fromkeys(each.label for each in series))
                charts[f"{data.name}-{name}.svg"] = (
                    f"{data.name}: mean AUC over classes; {made}. {KEY}",
                    drawn,
                )
    return charts


def _contamination(protocol: Protocol) -> float:
    return 100 * protocol.contamination


def _share(protocol: Protocol) -> float:
    return 100 * protocol.training_share


def _chart(
    data: str, series: list[Series], variant: Variant, axis: Axis, x_label: str
) -> str | None:
    measured = [(each, _measured(each, variant, axis)) for each in series]
    drawn = [
        (each, points, _published(each, variant, axis))
        for each, points in measured
        if len(points) > 1
    ]
    if not drawn:
        return None
    together = [point for _, ours, theirs in drawn for point in (*ours, *theirs)]
    widest = max(place for place, _ in together)
    limits = _limits([spread for _, spread in together])
    axes = new_axes(x_label, "mean AUC", (0, widest * 1.03), limits)
    for colour, (_, ours, theirs) in zip(COLOURS, drawn, strict=False):
        _draw(axes, ours, theirs, PALETTE[colour])
    (_, first), *_, (_, last) = drawn[0][1]
    # In the lower corner that the lines leave free.
    legend(
        axes,
        _names([each for each, _, _ in drawn]),
        "lower right" if last.value > first.value else "lower left",
    )
    return to_svg(axes, f"{data}: AUC against {x_label}")


def _draw(axes: Axes, ours: Points, theirs: Points, colour: str) -> None:
    """Measured points with bars of one standard deviation, and what was published as a dashed
    line.
    """
    line: dict[str, Any] = {"color": colour, "linewidth": LINE}
    axes.plot(*_coordinates(ours), marker="o", markersize=7, markeredgewidth=0, **line)
    axes.plot(*_coordinates(theirs), linestyle=(0, (2.5, 2)), alpha=0.6, **line)
    for place, spread in ours:
        if spread.deviation:
            low, high = spread.value - spread.deviation, spread.value + spread.deviation
            axes.plot([place, place], [low, high], **line)


def _coordinates(points: Points) -> tuple[list[float], list[float]]:
    return [place for place, _ in points], [spread.value for _, spread in points]


def _names(series: list[Series]) -> list[str]:
    """The methods where that is enough, else with their settings."""
    methods = [each.run.method for each in series]
    return methods if len(set(methods)) == len(methods) else [each.label for each in series]


def _limits(spreads: Sequence[Spread]) -> tuple[float, float]:
    """The part of the AUC axis to show: all bars, some air, and no less than the least range."""
    low = max(0.0, min(each.value - (each.deviation or 0) for each in spreads) - 0.02)
    high = min(1.0, max(each.value + (each.deviation or 0) for each in spreads) + 0.02)
    return min(low, max(0.0, high - LEAST_RANGE)), max(high, LEAST_RANGE)


def _measured(series: Series, variant: Variant, axis: Axis) -> Points:
    common = _common_classes(series, variant)
    figures = [
        (axis(one), series.over_seeds("image_auroc", one, common))
        for one in variant.protocols
        if series.classes(one)
    ]
    return [(place, figure) for place, figure in figures if figure is not None]


def _common_classes(series: Series, variant: Variant) -> list[str]:
    """The classes that every protocol at hand has."""
    there = [classes for classes in map(series.classes, variant.protocols) if classes]
    return sorted(set.intersection(*there)) if there else []


def _published(series: Series, variant: Variant, axis: Axis) -> Points:
    """The paper's means, which are of all classes; none beside a mean of some, of another test set,
    or of another method.
    """
    data, points = series.run.data, Points()
    other = series.untrained is not None or series.other_test_set is not None
    if other or set(_common_classes(series, variant)) != set(DATA[data].classes):
        return points
    for one in variant.protocols:
        asked = (MEAN, one.training_share, one.contamination)
        for figure in published(
            data, "image_auroc", paper_name(series.run.method), *asked, tables=variant.tables
        ).values():
            points.append((axis(one), Spread(figure.value, None)))
    return points
