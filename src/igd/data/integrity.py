"""Whether an image file is whole, as far as its format lets one tell; decoders make up what is
missing.

PNG    the checksum of every chunk
JPEG   that the data last to the end of the picture, whatever is written behind them; of several
       scans, that the last ones are there
WebP   that the lengths it states are there, and that its data don't end in a page of zeros
TIFF   that all strips or tiles lie within the file
BMP    that the size it states is there

What no format but PNG lets one see is a changed byte in the middle that still decodes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from PIL import Image

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
END_OF_IMAGE = b"\xff\xd9"
COEFFICIENTS = 64  # of a block
SCAN, FRAMES, BASELINE, PROGRESSIVE = 0xDA, range(0xC0, 0xD0), (0xC0, 0xC1), 0xC2
NOT_FRAMES = (0xC4, 0xC8, 0xCC)  # tables, among the numbers of frames
# Bytes that a decoder may read ahead of what it needs: eight fill its buffer.
PADDING = (bytes(8), b"\xaa" * 8)
# Zeros at the end of a WebP's data: half a bit for every block of 16x16 pixels. Encoders leave half
# as many where the lower part of a picture is of one colour; a crash leaves more.
EMPTY_TAIL, PIXELS_AN_EMPTY_BYTE = 64, 16 * 256


class Damaged(ValueError):
    """A file that is not whole; the text says what is wrong with it."""


def checked(contents: bytes) -> list[bytes]:
    """A file's contents in a form whose decoding fails where data are missing.

    Of a JPEG in several scans there are two: of a whole one they decode to the same pixels.
    """
    if contents.startswith(PNG):
        _check_png(contents)
    elif contents.startswith(JPEG):
        return _open_ended(contents)
    return [contents]


def check_opened(image: Image.Image, contents: bytes) -> None:
    """What the header of an opened file says about its length."""
    length = len(contents)
    if image.format == "WEBP":
        pixels = image.width * image.height
        _check_webp(contents, max(EMPTY_TAIL, pixels // PIXELS_AN_EMPTY_BYTE))
    if image.format == "BMP" and int.from_bytes(contents[2:6], "little") > length:
        raise Damaged("truncated: it is shorter than it says")
    if image.format == "TIFF":
        tags = image.tag_v2  # type: ignore[attr-defined]
        for offsets, counts in ((273, 279), (324, 325)):
            starts, sizes = tags.get(offsets, ()), tags.get(counts, ())
            if any(at + size > length for at, size in zip(starts, sizes, strict=False)):
                raise Damaged("truncated: it ends before its last strip")


def _check_png(contents: bytes) -> None:
    at, view, kind = len(PNG), memoryview(contents), b""
    while kind != b"IEND":
        if at + 12 > len(contents):
            raise Damaged("truncated: its last chunk is missing")
        length = int.from_bytes(view[at : at + 4], "big")
        kind, end = contents[at + 4 : at + 8], at + 8 + length
        if end + 4 > len(contents):
            raise Damaged("truncated in the middle of a chunk")
        if zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
            raise Damaged(f"damaged: wrong checksum of its chunk {kind.decode('latin-1')!r}")
        at = end + 4


def _check_webp(contents: bytes, empty: int) -> None:
    (size,) = struct.unpack_from("<I", contents, 4)
    if 8 + size > len(contents):
        raise Damaged(f"truncated: {len(contents)} bytes of {8 + size}")
    at = 12
    while at + 8 <= 8 + size:
        kind, length = contents[at : at + 4], int.from_bytes(contents[at + 4 : at + 8], "little")
        if at + 8 + length > 8 + size:
            raise Damaged("truncated in the middle of a chunk")
        data = contents[at + 8 : at + 8 + length]
        if kind in (b"VP8 ", b"VP8L") and len(data) - len(data.rstrip(b"\0")) >= empty:
            raise Damaged("damaged: its data end in zeros")
        at += 8 + length + length % 2


def _open_ended(contents: bytes) -> list[bytes]:
    """A JPEG without its end: a decoder that needs more data than there are says so, where it would
    have painted the rest grey had it met the end.
    """
    frame, components, several, start, first = 0, b"", False, 0, 0
    for marker, at, length in _segments(contents):
        if marker in FRAMES and marker not in NOT_FRAMES:
            frame, components = marker, contents[at + 8 : at + length : 3]
        if marker == 0xE2 and contents[at + 2 : at + 6] == b"MPF\0":
            return [contents]  # several pictures in one file, found by their offsets
        if marker == SCAN:
            first, start = at, at + length
            several = frame == PROGRESSIVE or contents[at + 2] != len(components)
    if not start or frame not in (*BASELINE, PROGRESSIVE):
        return [contents]
    if several:
        later = list(_later_markers(contents, start))
        if not later or later[-1][0] != END_OF_IMAGE[1]:
            return [contents]
        scans = [first, *(at for marker, at in later if marker == SCAN)]
        if not _is_complete(contents, components, scans):
            raise Damaged("truncated: its last scans are missing")
        end = later[-1][1] - 2
        return [contents[:end] + each + END_OF_IMAGE for each in PADDING]
    end = contents.find(END_OF_IMAGE, start)
    return [contents if end < 0 else contents[:end] + PADDING[0]]


def _segments(contents: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, place and length of each segment up to the first scan."""
    at = 2
    while at + 4 <= len(contents) and contents[at] == 0xFF:
        marker = contents[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        length = int.from_bytes(contents[at + 2 : at + 4], "big")
        yield marker, at + 2, length
        if marker == SCAN:
            return
        at += 2 + length


def _later_markers(contents: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Markers behind the first scan's header, and their places, up to the picture's end: within
    scans, 0xFF 0xD9 is a marker and nothing else; the tables between them are jumped over.
    """
    at = start
    while (at := contents.find(b"\xff", at)) >= 0 and at + 2 <= len(contents):
        marker = contents[at + 1]
        if marker in (0x00, 0xFF, 0x01) or 0xD0 <= marker <= 0xD7:  # data, filling, restarts
            at += 1 if marker == 0xFF else 2
            continue
        yield marker, at + 2
        if marker == END_OF_IMAGE[1]:
            return
        at += 2 + int.from_bytes(contents[at + 2 : at + 4], "big")


def _is_complete(contents: bytes, components: bytes, scans: list[int]) -> bool:
    """Whether scans bring every coefficient of every component down to its last bit."""
    missing = {component: set(range(COEFFICIENTS)) for component in components}
    for at in scans:
        count = contents[at + 2]
        listed = contents[at + 3 : at + 3 + 2 * count : 2]
        first, last, bits = contents[at + 3 + 2 * count : at + 6 + 2 * count]
        for component in listed:
            if bits & 0x0F == 0:  # none of the low bits are left for a later scan
                missing.get(component, set()).difference_update(range(first, last + 1))
    return not any(missing.values())
