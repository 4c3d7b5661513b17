"""Curves, histograms and scatter plots as SVG, drawn by matplotlib.

Inside a page, colours are the page's (`var(--a)`, dark where the reader's screen is), and text is
text. `svg.standalone` makes a file of its own from the same picture.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

WIDTH, HEIGHT = 360, 260  # about as wide as it is shown, so that text keeps its size
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 44  # around the plot area
LEGEND_LINE = 20
TEXT = 12
LINE = 2
# The style sheet's colours by their names, as they are on a white page.
PALETTE = {
    "a": "#c0392b",
    "b": "#2471a3",
    "c": "#1e8449",
    "d": "#9a6a00",
    "e": "#7d3c98",
    "f": "#17807e",
    "g": "#6b6f76",
    "ink": "#1d2430",
    "soft": "#7a8594",  # in a file of its own it must be read on white and on black
    "rule": "#d9dee5",
}
# Of the kinds in a scatter plot; normal ones come first and are blue as in the histogram. Shapes
# differ too: not everyone sees all colours.
KIND_COLOURS, KIND_MARKERS = "bacdefg", "o^sD"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": TEXT,
    "axes.edgecolor": "none",
    "axes.facecolor": "none",
    "axes.labelcolor": PALETTE["soft"],
    "axes.labelsize": TEXT,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.xmargin": 0,
    "axes.ymargin": 0,
    "grid.color": PALETTE["rule"],
    "grid.linewidth": 1,
    "xtick.labelcolor": PALETTE["soft"],
    "ytick.labelcolor": PALETTE["soft"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 6,
}


# Of matplotlib's SVG: metadata, a rule that would hold for the whole page, turns by no angle.
OF_NO_USE = (
    r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>"
    r"| transform=\"rotate\(-0 [^\"]*\""
)


def new_axes(
    x_label: str,
    y_label: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    height: float = HEIGHT,
) -> Axes:
    """An empty plot in the pages' style, of its own figure."""
    with mpl.rc_context(STYLE):
        axes = _canvas(height).add_axes(
            (
                LEFT / WIDTH,
                BOTTOM / height,
                1 - (LEFT + RIGHT) / WIDTH,
                1 - (TOP + BOTTOM) / height,
            )
        )
        axes.set_xlabel(x_label, labelpad=8)
        axes.set_ylabel(y_label)
        axes.yaxis.set_label_coords(-38 / (WIDTH - LEFT - RIGHT), 0.5)
        axes.set_xlim(*_widened(*x_range))
        axes.set_ylim(*_widened(*y_range))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value + 0:.6g}"))
    return axes


def to_svg(axes: Axes, description: str) -> str:
    """The figure of these axes as an SVG element for a page; the same picture is the same text."""
    buffer = io.StringIO()
    figure = axes.get_figure(root=True)
    assert figure is not None
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({**STYLE, "svg.hashsalt": description}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    svg = buffer.getvalue()
    content = svg[svg.index(">", svg.index("<svg")) + 1 :].replace("xlink:href", "href")
    content = re.sub(OF_NO_USE, "", content, flags=re.DOTALL)
    referred = set(re.findall(r"#([\w.-]+)[\")]", content))  # other ids would be there twice
    content = re.sub(
        r' id="([\w.-]+)"', lambda found: found[0] if found[1] in referred else "", content
    )
    content = re.sub(r"font-family: [^;]*", "font-family: system-ui, sans-serif", content)
    for name, colour in PALETTE.items():
        content = content.replace(colour, f"var(--{name}, {colour})")
    content = re.sub(r"\s*\n\s*", " ", content).replace("> <", "><").strip()
    height = round(72 * figure.get_figheight())
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(description)}" '
        f'stroke-linejoin="round">{content}'
    )


def curve(
    x: ArrayLike,
    y: ArrayLike,
    x_label: str,
    y_label: str,
    description: str,
    *,
    diagonal: bool = False,
) -> str:
    """One curve in the unit square: ROC, precision and recall."""
    axes = new_axes(x_label, y_label, (0, 1), (0, 1))
    if diagonal:
        axes.plot([0, 1], [0, 1], color=PALETTE["rule"], linewidth=LINE, linestyle=(0, (2, 2)))
    axes.plot(x, y, color=PALETTE["a"], linewidth=LINE, clip_on=False)
    return to_svg(axes, description)


def lines(
    series: dict[str, NDArray[np.float64]], x_label: str, y_label: str, description: str
) -> str:
    """Several curves over their index, with a legend."""
    highest = max(float(np.nanmax(values)) for values in series.values())
    longest = max(len(values) for values in series.values())
    axes = new_axes(x_label, y_label, (0, longest), (0, highest))
    for colour, values in zip("abcde", series.values(), strict=False):
        axes.plot(np.arange(1, len(values) + 1), values, color=PALETTE[colour], linewidth=LINE)
    legend(axes, list(series), "upper right")
    return to_svg(axes, description)


def rates(
    promised: Sequence[float], shares: dict[str, list[float]], x_label: str, description: str
) -> str:
    """Shares of images over promised rates, and the diagonal on which a promise is just kept."""
    axes = new_axes(x_label, "share of images", (0, promised[-1]), (0, 1))
    end = min(1, promised[-1])
    axes.plot([0, end], [0, end], color=PALETTE["rule"], linewidth=LINE, linestyle=(0, (2, 2)))
    for colour, values in zip("ab", shares.values(), strict=False):
        axes.plot(
            promised,
            values,
            color=PALETTE[colour],
            linewidth=LINE,
            drawstyle="steps-post",
            clip_on=False,
        )
    legend(axes, list(shares), "upper right")
    return to_svg(axes, description)


def histogram(
    groups: dict[str, NDArray[np.float64]],
    threshold: float,
    x_label: str,
    description: str,
    bins: int = 30,
) -> str:
    """Score distributions of several groups over one another, and the threshold as a line."""
    together = np.concatenate([*groups.values(), [threshold]])
    low, high = float(together.min()), float(together.max())
    if low == high:
        low, high = low - 0.05, high + 0.05
    edges = np.linspace(low, high, bins + 1)
    counts = [np.histogram(values, edges)[0] for values in groups.values()]
    highest = max(int(heights.max()) for heights in counts) or 1
    axes = new_axes(x_label, "images", (low, high), (0, highest))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    for colour, heights in zip("ab", counts, strict=True):
        axes.stairs(heights, edges, fill=True, color=PALETTE[colour], alpha=0.55, linewidth=0)
    axes.axvline(threshold, color=PALETTE["ink"], linewidth=1.5, linestyle=(0, (3.3, 2.7)))
    legend(axes, list(groups), "upper right")
    return to_svg(axes, description)


def points(
    places: NDArray[np.float64], kinds: Sequence[str], order: Sequence[str], description: str
) -> str:
    """Points on a plane whose axes mean nothing, each in colour and shape of its kind; kinds beyond
    the seventh share one.
    """
    most = len(KIND_COLOURS)
    named = list(order) if len(order) <= most else [*order[: most - 1], "other kinds"]
    shown = np.array([kind if kind in named else "other kinds" for kind in kinds])
    height = HEIGHT + LEGEND_LINE * len(named) + 4
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        axes = _canvas(height).add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    low, high = places.min(axis=0), places.max(axis=0)
    scaled = 10 + (places - low) / np.maximum(high - low, 1e-12) * (WIDTH - 20, HEIGHT - 20)
    for number, name in enumerate(named):
        own, y = scaled[shown == name], HEIGHT + LEGEND_LINE * (number + 0.5)
        axes.plot(
            [*own[:, 0], 12],
            [*own[:, 1], y],
            linestyle="none",
            marker=KIND_MARKERS[number % len(KIND_MARKERS)],
            markersize=6 if number % len(KIND_MARKERS) == 3 else 7,
            color=PALETTE[KIND_COLOURS[number]],
            markeredgewidth=0,
            alpha=0.7,
        )
        text = f"{name} ({len(own)})"
        axes.text(26, y, text, color=PALETTE["soft"], size=TEXT, va="center", parse_math=False)
    return to_svg(axes, description)


def legend(axes: Axes, names: Sequence[str], corner: str, colours: Sequence[str] = "abcde") -> None:
    """Names in the colours of what they name, in a corner of the plot such as 'upper right'."""
    upper, right = corner.startswith("upper"), corner.endswith("right")
    for number, name in enumerate(names):
        lines_away = number if upper else len(names) - 1 - number
        axes.annotate(
            name,
            (int(right), int(upper)),
            xycoords="axes fraction",
            xytext=(-6 if right else 8, (-14 - 16 * lines_away) if upper else 10 + 16 * lines_away),
            textcoords="offset points",
            ha="right" if right else "left",
            color=PALETTE[colours[number]],
            size=TEXT,
            fontweight="bold",
            parse_math=False,
        )


def _canvas(height: float) -> Figure:
    """A figure whose points are the SVG's units."""
    return Figure(figsize=(WIDTH / 72, height / 72), dpi=72)


def _widened(low: float, high: float) -> tuple[float, float]:
    """A range with something in it."""
    return (low, high) if high > low else (low, low + 1)
