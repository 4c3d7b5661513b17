"""Drawings as SVG: boxes, lines and text on a panel of their own, readable on light and on dark
pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

STYLE = """
svg { color-scheme: light dark }
text { font: 13px system-ui, sans-serif; fill: #1d2a33 }
.panel { fill: #f4f6f8 }
.box { fill: #fff; stroke: #5b7285; stroke-width: 1.2 }
.given { fill: #e4edf3; stroke: #5b7285; stroke-width: 1.2 }
.said { fill: #ffe9c4; stroke: #b56a00; stroke-width: 1.2 }
.line { fill: none; stroke: #5b7285; stroke-width: 1.5 }
.curve { fill: none; stroke: #b56a00; stroke-width: 2.5 }
.faint { fill: none; stroke: #b9c5ce; stroke-width: 1 }
.area { fill: #b56a00; fill-opacity: .15 }
.head { fill: #5b7285 }
.name { font-weight: 600 }
.small { font-size: 11.5px; fill: #4a5b67 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf2 }
  .panel { fill: #1b2329 }
  .box { fill: #27333b; stroke: #8fa6b5 }
  .given { fill: #2d4250; stroke: #8fa6b5 }
  .said { fill: #54401c; stroke: #ffb84d }
  .line { stroke: #8fa6b5 }
  .curve { stroke: #ffb84d }
  .faint { stroke: #4a5b67 }
  .area { fill: #ffb84d }
  .head { fill: #8fa6b5 }
  .small { fill: #b4c2cc }
}
"""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto">'
    '<path class="head" d="M0,0 8,4 0,8z"/></marker>'
)

Point = tuple[float, float]


def drawing(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A whole SVG file."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f"<defs>{HEAD}</defs>",
            f'<rect class="panel" width="{width}" height="{height}" rx="8"/>',
            *parts,
            "</svg>\n",
        ]
    )


def box(x: float, y: float, width: float, height: float, kind: str = "box") -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def line(points: Iterable[Point], kind: str = "line") -> str:
    return f'<polyline class="{kind}" points="{_listed(points)}"/>'


def area(points: Iterable[Point]) -> str:
    return f'<polygon class="area" points="{_listed(points)}"/>'


def arrow(points: Iterable[Point]) -> str:
    return f'<polyline class="line" marker-end="url(#head)" points="{_listed(points)}"/>'


def _listed(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def write(script: str, svg: str) -> None:
    """Write a drawing beside the script that draws it, under its name."""
    Path(script).with_suffix(".svg").write_text(svg, encoding="utf-8")
