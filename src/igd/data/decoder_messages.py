"""What decoders say beside what they raise: Pillow by logging, libtiff straight to standard error.
Each of it is in the error that names the file, so nobody needs it twice.
"""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path

from PIL import features


def silence() -> None:
    """Keep messages of decoders off standard error, as far as the system lets us."""
    # Who configures logging still gets Pillow's records; nobody else does.
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    if features.check("libtiff"):
        for library in _loaded("libtiff"):
            ctypes.CDLL(library).TIFFSetErrorHandler(None)


def _loaded(name: str) -> list[str]:
    """The files of a library in this process; none where the system does not tell (not Linux)."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if name in line}
    return sorted(path for path in paths if Path(path).name.startswith(name))
