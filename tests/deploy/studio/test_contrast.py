"""WCAG 2.1 AA: text 4.5 to 1 on what lies behind it, signs and outlines of controls 3 to 1."""

import re
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[3] / "src" / "igd" / "deploy"
STYLES = [DEPLOY / "server" / "page" / "page.css", DEPLOY / "studio" / "page" / "studio.css"]
TEXT = [
    *[(text, behind) for text in ("ink", "soft", "mark", "alarm") for behind in ("paper", "card")],
    *[("calm", "card"), ("doubt", "card"), ("doubt", "doubt-wash"), ("alarm", "alarm-wash")],
    *[("calm", "calm-wash"), ("paper", "mark"), ("paper", "alarm"), ("card", "ink")],
]
CONTROLS = [("line", "card"), ("line", "paper"), ("mark", "card"), ("alarm", "card")]


def colours(scheme: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for style in STYLES:
        text = style.read_text()
        dark = re.findall(
            r"@media \(prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}", text, re.DOTALL
        )
        light = re.match(r".*?:root \{(.*?)\}", text, re.DOTALL)
        assert light is not None
        for block in [light[1], *(dark if scheme == "dark" else [])]:
            found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lower, higher = sorted((luminance(one), luminance(other)))
    return (higher + 0.05) / (lower + 0.05)


def test_the_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(scheme: str) -> None:
    named = colours(scheme)
    low = {
        pair: round(contrast(named[pair[0]], named[pair[1]]), 2)
        for pairs, least in ((TEXT, 4.5), (CONTROLS, 3.0))
        for pair in pairs
        if contrast(named[pair[0]], named[pair[1]]) < least
    }
    assert not low
