"""Drawings of a page as files of their own."""

from __future__ import annotations

import re

LARGER = 1.25  # than its unit: its text is then as large as a page's


def standalone(svg: str) -> str:
    """A picture of a page as a file of its own, with name space, size and colours."""
    named = re.sub(
        r'^<svg viewBox="0 0 (\d+) (\d+)"',
        lambda found: (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LARGER * int(found[1]):g}" '
            f'height="{LARGER * int(found[2]):g}" {found[0][5:]}'
        ),
        svg,
    )
    return re.sub(r"var\(--\w+, (#\w+)\)", r"\1", named) + "\n"
