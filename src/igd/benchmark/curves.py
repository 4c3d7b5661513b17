"""Figure 1 of the paper from our runs: AUC against contamination, and against the size of the training set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from igd.benchmark.datasets import DATA
from igd.benchmark.methods import paper_name
from igd.benchmark.paper import MEAN, published
from igd.benchmark.protocols import Protocol
from igd.benchmark.series import Series, Spread, series_of
from igd.benchmark.store import Record
from igd.benchmark.suites import CONTAMINATED, SMALL, Variant
from igd.evaluation.figures import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Axes

METHODS = ("igd", "dsvdd")  # as in the paper's figure
STYLES = "abcde"
KEY = "Dots: measured, with one standard deviation over seeds; dashed: the paper, where it has a mean of the same classes."
COLOURS = {"a": "#c0392b", "b": "#2471a3", "c": "#1e8449", "d": "#9a6a00", "e": "#7d3c98"}
LEAST_RANGE = 0.1  # of the AUC axis: differences of a thousandth are not to look like cliffs
Points = list[tuple[float, Spread]]
Axis = Callable[[Protocol], float]


def charts_of(records: Iterable[Record]) -> dict[str, tuple[str, str]]:
    """Charts by file name, each with its caption; those for which there are runs at two points at least."""
    listed, charts = list(records), {}
    for data in DATA.values():
        series = [each for each in series_of(listed, data.name) if each.run.method in METHODS][: len(STYLES)]
        for name, variant, axis, x_label in (
            ("contaminated", CONTAMINATED, _contamination, "test anomalies in the training set, %"),
            ("small", SMALL, _share, "share of the training set, %"),
        ):
            drawn = _chart(data.name, series, variant, axis, x_label)
            if drawn:
                made = " and ".join(dict.fromkeys(each.label.partition(", ")[2] for each in series))
                charts[f"{data.name}-{name}.svg"] = (f"{data.name}: mean AUC over classes; {made}. {KEY}", drawn)
    return charts


def _contamination(protocol: Protocol) -> float:
    return 100 * protocol.contamination


def _share(protocol: Protocol) -> float:
    return 100 * protocol.training_share


def _chart(data: str, series: list[Series], variant: Variant, axis: Axis, x_label: str) -> str | None:
    measured = [(each, _measured(each, variant, axis)) for each in series]
    drawn = [(each, points, _published(each, variant, axis)) for each, points in measured if len(points) > 1]
    if not drawn:
        return None
    together = [point for _, ours, theirs in drawn for point in (*ours, *theirs)]
    widest = max(place for place, _ in together)
    limits = _limits([spread for _, spread in together])
    axes = Axes(x_label, "mean AUC", (0, widest * 1.03), limits, f"{data}: AUC against {x_label}")
    shapes = []
    for style, (_, ours, theirs) in zip(STYLES, drawn, strict=False):
        shapes += [_line(axes, ours, style), *([_line(axes, theirs, f"{style} published")] if theirs else [])]
        shapes += [axes.mark(place, spread.value, style, spread.deviation) for place, spread in ours]
    (_, first), *_, (_, last) = drawn[0][1]
    return axes.draw([*shapes, *_legend([each for each, _, _ in drawn], rising=last.value > first.value)])


def _legend(series: list[Series], rising: bool) -> list[str]:
    """Names in the lower corner that the lines leave free: methods where that is enough, else with their settings."""
    methods = [each.run.method for each in series]
    names = methods if len(set(methods)) == len(methods) else [each.label for each in series]
    side = f'x="{WIDTH - RIGHT - 8}" text-anchor="end"' if rising else f'x="{LEFT + 8}"'
    lowest = HEIGHT - BOTTOM - 10
    rows = range(len(names) - 1, -1, -1)
    return [
        f'<text class="{style}" {side} y="{lowest - 16 * row}">{escape(name)}</text>'
        for style, row, name in zip(STYLES, rows, names, strict=False)
    ]


def _limits(spreads: Sequence[Spread]) -> tuple[float, float]:
    """The part of the AUC axis to show: all bars, some air, and no less than the least range."""
    low = max(0.0, min(each.value - (each.deviation or 0) for each in spreads) - 0.02)
    high = min(1.0, max(each.value + (each.deviation or 0) for each in spreads) + 0.02)
    return min(low, max(0.0, high - LEAST_RANGE)), max(high, LEAST_RANGE)


def _line(axes: Axes, points: Points, style: str) -> str:
    return axes.line([place for place, _ in points], [spread.value for _, spread in points], style)


def _measured(series: Series, variant: Variant, axis: Axis) -> Points:
    common = _common_classes(series, variant)
    figures = [(axis(one), series.over_seeds("image_auroc", one, common)) for one in variant.protocols if series.classes(one)]
    return [(place, figure) for place, figure in figures if figure is not None]


def _common_classes(series: Series, variant: Variant) -> list[str]:
    """The classes that every protocol at hand has."""
    there = [classes for classes in map(series.classes, variant.protocols) if classes]
    return sorted(set.intersection(*there)) if there else []


def _published(series: Series, variant: Variant, axis: Axis) -> Points:
    """The paper's means, which are of all classes; none beside a mean of some, or of another test set."""
    data, points = series.run.data, Points()
    if series.other_test_set is not None or set(_common_classes(series, variant)) != set(DATA[data].classes):
        return points
    for one in variant.protocols:
        asked = (MEAN, one.training_share, one.contamination)
        for figure in published(data, "image_auroc", paper_name(series.run.method), *asked, tables=variant.tables).values():
            points.append((axis(one), Spread(figure.value, None)))
    return points


def standing_alone(svg: str) -> str:
    """A picture of a page as a file of its own, with name space and colours."""
    rules = [
        "text{font:12px system-ui,sans-serif;fill:#7a8594}.grid{stroke:#d9dee5}",
        ".line{fill:none;stroke-width:2}.published{stroke-dasharray:5 4;stroke-opacity:.6}",
        *(
            f".line.{style}{{stroke:{colour}}}.point.{style}{{fill:{colour}}}text.{style}{{fill:{colour};font-weight:600}}"
            for style, colour in COLOURS.items()
        ),
    ]
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{"".join(rules)}</style>{rest}'
