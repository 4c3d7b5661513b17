"""Drawings of a page as files of their own."""

from __future__ import annotations

import re


def standalone(svg: str) -> str:
    """A picture of a page as a file of its own, with name space and colours."""
    named = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return re.sub(r"var\(--\w+, (#\w+)\)", r"\1", named) + "\n"
