"""What the colours of anomaly maps and overlays mean, as a drawing."""

from __future__ import annotations

from igd.evaluation.overlay import AT_MOST, AT_THRESHOLD, FULL, OUTLINE, RED, YELLOW

WIDTH, HEIGHT = 360, 88
LEFT, RIGHT = 56, 8  # beside the strips
STRIP, TOP, BOTTOM = 16, 18, 52  # height of a strip, and where both begin and end
PHOTOGRAPH = "#808080"  # what the translucent strip lies on

Colour = tuple[int, int, int]


def colour_bar(usual: float, threshold: float) -> str:
    """An SVG of two strips from 0 to 1, the map's colours and the overlay's on grey, with ticks at
    what is usual on normal images and at the threshold.
    """
    full = threshold + FULL * (1 - threshold)
    opaque = (((255, 255, 255), usual, 1.0), (YELLOW, threshold, 1.0), (RED, full, 1.0))
    translucent = (
        (YELLOW, usual, 0.0),
        (YELLOW, threshold, AT_THRESHOLD),
        (RED, full, AT_MOST),
    )
    described = (
        f"colour bar: white up to {usual:.2f}, what is usual on normal images; yellow at the pixel "
        f"threshold, {threshold:.2f}; then red"
    )
    lower = TOP + STRIP + 2
    return "".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{described}" '
            'font-family="system-ui, sans-serif" font-size="12" fill="var(--soft, #7a8594)">',
            _gradient("map-colours", opaque),
            _gradient("overlay-colours", translucent),
            _text(LEFT, 12, "0", "start"),
            _text(WIDTH - RIGHT, 12, "1", "end"),
            _text(LEFT - 8, TOP + 12, "map", "end"),
            _text(LEFT - 8, lower + 12, "overlay", "end"),
            _strip(TOP, "url(#map-colours)"),
            _strip(lower, PHOTOGRAPH),
            _strip(lower, "url(#overlay-colours)"),
            _tick(usual, 66, f"usual {usual:.2f}", "var(--soft, #7a8594)", 0.2),
            _tick(threshold, 82, f"threshold {threshold:.2f}", f"rgb{OUTLINE}", 0.4),
            "</svg>",
        ]
    )


def _across(value: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(value, 0), 1), 1)


def _gradient(name: str, stops: tuple[tuple[Colour, float, float], ...]) -> str:
    drawn = "".join(
        f'<stop offset="{offset:.4f}" stop-color="rgb{colour}" stop-opacity="{opacity:g}"/>'
        for colour, offset, opacity in stops
    )
    return f'<linearGradient id="{name}">{drawn}</linearGradient>'


def _strip(top: int, fill: str) -> str:
    return (
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT - RIGHT}" height="{STRIP}" '
        f'fill="{fill}" stroke="var(--rule, #d9dee5)"/>'
    )


def _tick(value: float, y: int, text: str, colour: str, room: float) -> str:
    """A line across both strips, down to its words: to its left where there is room for them."""
    x, right = _across(value), value > room
    return (
        f'<path d="M{x} {TOP - 2}V{y}" stroke="{colour}" stroke-width="2"/>'
        f"{_text(x + (-6 if right else 6), y, text, 'end' if right else 'start')}"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
