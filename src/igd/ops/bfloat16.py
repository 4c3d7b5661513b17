"""Whether this machine multiplies in bfloat16.

Some virtual machines announce matrix units (AMX) without saying how large they are. PyTorch
believes them, and the first product ends the process, which nothing can catch: so one is tried in a
process of its own.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import cache

from igd.errors import UserError

PRODUCT = "import torch; one = torch.ones(256, 256, dtype=torch.bfloat16); one @ one"
# What a process ends with that came upon an instruction its processor has not: on POSIX, on
# Windows.
ILLEGAL = (-signal.SIGILL, 0xC000001D)
PATIENCE = 120  # seconds
WITHOUT_MATRIX_UNITS = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"


@cache
def multiplies_bfloat16() -> bool | None:
    """Whether such a product ends well, under this process's own environment; None where it could
    not be tried.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; {PRODUCT}"
    try:
        tried = subprocess.run(
            [sys.executable or "python", "-c", code], capture_output=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return False if tried.returncode in ILLEGAL else True if tried.returncode == 0 else None


def require_bfloat16(precision: str) -> None:
    """Refuse a precision that rounds to bfloat16 where that would end the process."""
    if precision.startswith("bf16") and multiplies_bfloat16() is False:
        raise UserError(
            f"precision {precision!r} can't be used here: this machine announces matrix units "
            f"(AMX) that end the process when they are used; leave the precision at 32-true, or "
            f"set {WITHOUT_MATRIX_UNITS} in the environment"
        )
