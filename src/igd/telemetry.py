"""Nothing is reported to anyone: the packages that would are told not to, before they are imported.

ONNX Runtime 1.31.1 leaves a device id and a queue of events in the user's cache folder as
soon as it is imported, and looks its collector up some ten seconds later.
"""

from __future__ import annotations

import os
import sys

# Variable and value that each package documents. Processes that are started here inherit them.
OFF = {"ORT_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def turn_off() -> None:
    """Called by `igd/__init__.py`, which runs before any other module of the package."""
    os.environ.update(OFF)
    imported = sys.modules.get("onnxruntime")
    if imported is not None:  # by somebody else, earlier: then this is all that can still be done
        getattr(imported, "disable_telemetry_events", lambda: None)()
