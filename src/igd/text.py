"""Text from elsewhere, on its way to a terminal or a log."""

from __future__ import annotations

import re

# Control characters, what turns the direction of writing, and bytes of a file name that are no
# UTF-8, which Python keeps as lone surrogates.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> str:
    r"""A name or a message on one line, without anything that a terminal obeys.

    >>> visible("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    return _HIDDEN.sub(lambda found: _escaped(found[0]), str(text))


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
