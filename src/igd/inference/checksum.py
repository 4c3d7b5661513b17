"""The checksum of an exported model: a last entry of its metadata, over all bytes before it.

ONNX files are protocol buffers, of which a part may be appended: the file stays one that any
runtime reads, and the entry, of fixed size, is found without a package that understands the format.
"""

from __future__ import annotations

import hashlib

KEY = b"igd.sha256"
DIGITS = 64
# Field 14 of a model, metadata_props: a message of two strings, the first of which is the key.
_ENTRY = b"\x0a" + bytes([len(KEY)]) + KEY + b"\x12" + bytes([DIGITS])
_START = b"\x72" + bytes([len(_ENTRY) + DIGITS]) + _ENTRY


def with_checksum(model: bytes) -> bytes:
    """A serialised model with its checksum behind it."""
    return model + _START + hashlib.sha256(model).hexdigest().encode()


def has_its_checksum(contents: bytes) -> bool | None:
    """Whether a file's contents are those it was written with; None where it has no checksum."""
    size = len(_START) + DIGITS
    if contents[-size:-DIGITS] != _START:
        return None
    return hashlib.sha256(contents[:-size]).hexdigest().encode() == contents[-DIGITS:]
