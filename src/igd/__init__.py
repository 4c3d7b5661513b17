"""igd: learns what normal images look like, scores new ones and shows where they deviate."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from igd import telemetry
from igd.version import __version__

telemetry.turn_off()

if TYPE_CHECKING:
    from igd.detector import IGD
    from igd.errors import UserError
    from igd.inference.predictor import Prediction
    from igd.inference.runtime import Runtime

__all__ = ["IGD", "Prediction", "Runtime", "UserError", "__version__"]

_MODULES = {
    "IGD": "igd.detector",
    "Prediction": "igd.inference.predictor",
    "Runtime": "igd.inference.runtime",
    "UserError": "igd.errors",
}


def __getattr__(name: str) -> Any:
    """Import PyTorch only when the detector is asked for, so that `igd --help` answers at once."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'igd' has no attribute {name!r}")
