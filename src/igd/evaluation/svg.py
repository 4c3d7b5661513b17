"""Drawings of a page as files of their own."""

from __future__ import annotations

import re

LARGER = 1.25  # than its unit: its text is then as large as a page's


def standalone(svg: str) -> str:
    """A picture of a page as a file of its own, with name space, size and colours."""
    box = re.match(r'<svg viewBox="0 0 (\d+) (\d+)" ', svg)
    assert box is not None, svg[:80]
    width, height = (LARGER * int(side) for side in box.groups())
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
    named = svg.replace("<svg ", head, 1)
    return re.sub(r"var\(--\w+, (#\w+)\)", r"\1", named) + "\n"
