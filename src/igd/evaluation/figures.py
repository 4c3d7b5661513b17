"""Curves, histograms and points as small SVG pictures, coloured by the page's style sheet (classes `a`, `b`, `c`, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

WIDTH, HEIGHT = 360, 260  # about as wide as it is shown, so that text keeps its size
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 44
POINT_STYLES = "bacdefg"  # of the kinds in a map of points; normal ones come first and are blue as in the histogram
LEGEND_LINE = 20


@dataclass(frozen=True)
class Axes:
    """The plot area: data coordinates to picture coordinates, and its frame."""

    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    description: str

    def x(self, value: float) -> float:
        low, high = self.x_range
        return LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    def line(self, x: ArrayLike, y: ArrayLike, style: str) -> str:
        points = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(np.asarray(x), np.asarray(y), strict=True))
        return f'<polyline class="line {style}" points="{points}"/>'

    def mark(self, x: float, y: float, style: str, deviation: float | None = None) -> str:
        """A dot where something was measured, with a bar of one standard deviation each way where that is known."""
        at, dot = f"{self.x(x):.1f}", f'<circle class="point {style}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5"/>'
        if not deviation:
            return dot
        low, high = (min(max(each, self.y_range[0]), self.y_range[1]) for each in (y - deviation, y + deviation))
        return f'<line class="line {style}" x1="{at}" x2="{at}" y1="{self.y(low):.1f}" y2="{self.y(high):.1f}"/>{dot}'

    def draw(self, shapes: Sequence[str]) -> str:
        parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.description)}">']
        for tick in _ticks(*self.y_range):
            y = self.y(tick)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in _ticks(*self.x_range):
            parts.append(f'<text x="{self.x(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
        parts += shapes
        middle_x, middle_y = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        parts.append(f'<text x="{middle_x}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self.x_label)}</text>')
        turned = f'x="13" y="{middle_y}" transform="rotate(-90 13 {middle_y})"'
        parts.append(f'<text {turned} text-anchor="middle">{escape(self.y_label)}</text>')
        return "".join([*parts, "</svg>"])


def curve(x: ArrayLike, y: ArrayLike, x_label: str, y_label: str, description: str, *, diagonal: bool = False) -> str:
    """One curve in the unit square: ROC, precision and recall."""
    axes = Axes(x_label, y_label, (0, 1), (0, 1), description)
    chance = [axes.line([0, 1], [0, 1], "faint")] if diagonal else []
    return axes.draw([*chance, axes.line(x, y, "a")])


def lines(series: dict[str, NDArray[np.float64]], x_label: str, y_label: str, description: str) -> str:
    """Several curves over their index, with a legend."""
    highest = max(float(np.nanmax(values)) for values in series.values())
    longest = max(len(values) for values in series.values())
    axes = Axes(x_label, y_label, (0, longest), (0, highest), description)
    shapes = []
    for number, (name, values) in enumerate(series.items()):
        style = "abcde"[number]
        shapes += [axes.line(np.arange(1, len(values) + 1), values, style), _legend(number, name, style)]
    return axes.draw(shapes)


def histogram(groups: dict[str, NDArray[np.float64]], threshold: float, x_label: str, description: str, bins: int = 30) -> str:
    """Score distributions of several groups over one another, and the threshold as a line."""
    together = np.concatenate([*groups.values(), [threshold]])
    low, high = float(together.min()), float(together.max())
    edges = np.linspace(low, high if high > low else low + 1e-6, bins + 1)
    counts = {name: np.histogram(values, edges)[0] for name, values in groups.items()}
    highest = max(int(heights.max()) for heights in counts.values()) or 1
    axes = Axes(x_label, "images", (edges[0], edges[-1]), (0, highest), description)
    wide = axes.x(edges[1]) - axes.x(edges[0])
    shapes = []
    for number, (name, heights) in enumerate(counts.items()):
        style = "ab"[number]
        for left, height in zip(edges[:-1], heights, strict=True):
            if height:
                place = f'x="{axes.x(left):.1f}" y="{axes.y(height):.1f}"'
                size = f'width="{wide:.1f}" height="{axes.y(0) - axes.y(height):.1f}"'
                shapes.append(f'<rect class="bar {style}" {place} {size}/>')
        shapes.append(_legend(number, name, style))
    at = f"{axes.x(threshold):.1f}"
    shapes.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    return axes.draw(shapes)


def points(places: NDArray[np.float64], kinds: Sequence[str], order: Sequence[str], description: str) -> str:
    """Points on a plane whose axes mean nothing, each in colour and shape of its kind; kinds beyond the seventh share one."""
    named = list(order) if len(order) <= len(POINT_STYLES) else [*order[: len(POINT_STYLES) - 1], "other kinds"]
    shown = [kind if kind in named else "other kinds" for kind in kinds]
    low, high = places.min(axis=0), places.max(axis=0)
    scaled = 10 + (places - low) / np.maximum(high - low, 1e-12) * (WIDTH - 20, HEIGHT - 20)
    parts = [_point(x, y, named.index(kind)) for (x, y), kind in zip(scaled, shown, strict=True)]
    for number, name in enumerate(named):
        y = HEIGHT + LEGEND_LINE * (number + 0.5)
        parts.append(_point(12, y, number))
        parts.append(f'<text x="26" y="{y + 4:.1f}">{escape(name)} ({shown.count(name)})</text>')
    height = HEIGHT + LEGEND_LINE * len(named) + 4
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(description)}">{"".join(parts)}</svg>'


def _point(x: float, y: float, number: int) -> str:
    """A mark of the number's colour and shape: not everyone sees all colours."""
    style = f'class="point {POINT_STYLES[number]}"'
    if number % 4 == 0:
        return f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    corners = {1: ((-4, 3), (4, 3), (0, -5)), 2: ((-3, -3), (3, -3), (3, 3), (-3, 3)), 3: ((0, -5), (4, 0), (0, 5), (-4, 0))}
    outline = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in corners[number % 4])
    return f'<polygon {style} points="{outline}"/>'


def _legend(number: int, name: str, style: str) -> str:
    place = f'x="{WIDTH - RIGHT - 6}" y="{TOP + 14 + 16 * number}"'
    return f'<text class="{style}" {place} text-anchor="end">{escape(name)}</text>'


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two limits."""
    span = (high - low) or 1.0
    step = 10 ** np.floor(np.log10(span / about))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= about + 1)
    first = np.ceil(low / step - 1e-9) * step
    return [round(float(tick), 10) + 0.0 for tick in np.arange(first, high + step * 1e-6, step)]  # + 0.0: no "-0"
