"""igd: learns what normal images look like, scores new ones and shows where they deviate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from igd.version import __version__

if TYPE_CHECKING:
    from igd.detector import IGD
    from igd.errors import UserError
    from igd.judging import Prediction

__all__ = ["IGD", "Prediction", "UserError", "__version__"]


def __getattr__(name: str) -> Any:
    """Import PyTorch only when the detector is asked for, so that `igd --help` answers at once."""
    if name == "IGD":
        from igd.detector import IGD

        return IGD
    if name == "Prediction":
        from igd.judging import Prediction

        return Prediction
    if name == "UserError":
        from igd.errors import UserError

        return UserError
    raise AttributeError(f"module 'igd' has no attribute {name!r}")
