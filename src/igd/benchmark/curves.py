"""Figure 1 of the paper from our runs: AUC against contamination, and against the size of the training set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from igd.benchmark.datasets import DATA
from igd.benchmark.methods import paper_name
from igd.benchmark.paper import MEAN, published
from igd.benchmark.protocols import Protocol
from igd.benchmark.series import Series, series_of
from igd.benchmark.store import Record
from igd.benchmark.suites import CONTAMINATED, SMALL, Variant
from igd.evaluation.figures import LEFT, TOP, Axes

METHODS = ("igd", "dsvdd")  # as in the paper's figure
STYLES = "abcde"
COLOURS = {"a": "#c0392b", "b": "#2471a3", "c": "#1e8449", "d": "#9a6a00", "e": "#7d3c98"}
Points = list[tuple[float, float]]
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
                charts[f"{data.name}-{name}.svg"] = (
                    f"{data.name}: mean AUC over classes; solid: measured, dashed: the paper.",
                    drawn,
                )
    return charts


def _contamination(protocol: Protocol) -> float:
    return 100 * protocol.contamination


def _share(protocol: Protocol) -> float:
    return 100 * protocol.training_share


def _chart(data: str, series: list[Series], variant: Variant, axis: Axis, x_label: str) -> str | None:
    measured = [(each, _measured(each, variant, axis)) for each in series]
    drawn = [(each, points, _published(each, data, variant, axis)) for each, points in measured if len(points) > 1]
    if not drawn:
        return None
    together = [point for _, ours, theirs in drawn for point in (*ours, *theirs)]
    heights = [height for _, height in together]
    limits = (max(0.0, min(heights) - 0.02), min(1.0, max(heights) + 0.02))
    widest = max(place for place, _ in together)
    axes = Axes(x_label, "mean AUC", (0, widest), limits, f"{data}: AUC against {x_label}")
    shapes = []
    for number, (each, ours, theirs) in enumerate(drawn):
        style = STYLES[number]
        shapes += [_line(axes, ours, style), *([_line(axes, theirs, f"{style} published")] if theirs else [])]
        place = f'x="{LEFT + 8}" y="{TOP + 14 + 16 * number}"'
        shapes.append(f'<text class="{style}" {place}>{escape(each.label)}</text>')
    return axes.draw(shapes)


def _line(axes: Axes, points: Points, style: str) -> str:
    return axes.line([place for place, _ in points], [height for _, height in points], style)


def _measured(series: Series, variant: Variant, axis: Axis) -> Points:
    there = [one for one in variant.protocols if series.classes(one)]
    common = sorted(set.intersection(*(series.classes(one) for one in there))) if there else []
    figures = [(axis(one), series.over_seeds("image_auroc", one, common)) for one in there]
    return [(place, figure.value) for place, figure in figures if figure is not None]


def _published(series: Series, data: str, variant: Variant, axis: Axis) -> Points:
    points: Points = []
    if series.other_test_set is not None:
        return points
    for one in variant.protocols:
        asked = (MEAN, one.training_share, one.contamination)
        for figure in published(data, "image_auroc", paper_name(series.run.method), *asked, tables=variant.tables).values():
            points.append((axis(one), figure.value))
    return points


def standing_alone(svg: str) -> str:
    """A picture of a page as a file of its own, with name space and colours."""
    rules = [
        "text{font:12px system-ui,sans-serif;fill:#7a8594}.grid{stroke:#d9dee5}",
        ".line{fill:none;stroke-width:2}.published{stroke-dasharray:5 4;stroke-opacity:.6}",
        *(
            f".line.{style}{{stroke:{colour}}}text.{style}{{fill:{colour};font-weight:600}}"
            for style, colour in COLOURS.items()
        ),
    ]
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{"".join(rules)}</style>{rest}'
