"""A Ray cluster: one on this machine for as long as it is needed, or one that runs already.

The extra `ray` brings Ray. On this machine it listens on 127.0.0.1, has no dashboard and reports to
nobody (`igd/telemetry.py`).
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib.util import find_spec
from typing import Any

from igd.cpu import cores
from igd.errors import UserError

WAY_OUT = "pip install 'igd-anomaly[ray]' brings it"
OBJECTS = 200 << 20  # bytes that Ray holds in shared memory: a model, and results on their way
QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}
# Where Ray expects no further machines, it listens on 127.0.0.1; else on every network there is.
LOOPBACK = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")


def check_installed() -> None:
    """Say what to install before anything else is done."""
    missing = [name for name in ("ray", "pyarrow", "pandas") if find_spec(name) is None]
    if missing:
        raise UserError(
            f"the engine ray needs the package {missing[0]}, which is not installed; {WAY_OUT}"
        )


@contextmanager
def cluster(
    address: str | None = None, workers: int | None = None, verbose: bool = False
) -> Iterator[int]:
    """Ray, ready for work; how many workers to use. Without an address it is started here, and
    ended afterwards. Whoever has started or joined a cluster in this process keeps it.

    Standard output is for results: what Ray prints there goes to standard error meanwhile.
    """
    check_installed()
    if workers is not None and workers < 1:
        raise UserError(f"workers is {workers}; at least one must do the work")
    if address is None:
        _stay_on_this_machine()
    if not verbose:  # what matters of it is said by us
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    import ray

    with redirect_stdout(sys.stderr):
        if ray.is_initialized():
            yield workers or _cpus(ray)
            return
        with nullcontext() if verbose else _silent():
            _begin(ray, address, workers or cores(), verbose)
        try:
            yield workers or _cpus(ray)
        finally:
            ray.shutdown()


def _stay_on_this_machine() -> None:
    """Ask Ray to listen on 127.0.0.1 alone, also where somebody has imported it already."""
    os.environ.setdefault(*LOOPBACK)
    constants = sys.modules.get("ray._private.ray_constants")
    if constants is not None and os.environ[LOOPBACK[0]] == LOOPBACK[1]:
        constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]


def _begin(ray: Any, address: str | None, cpus: int, verbose: bool) -> None:
    """Start a cluster here, or join the one at an address."""
    quiet: dict[str, Any] = {} if verbose else QUIET
    if address is None:
        ray.init(num_cpus=cpus, include_dashboard=False, object_store_memory=OBJECTS, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{address}: no Ray cluster answers there ({reason}); start one with: ray start --head"
        ) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Ray's own greeting, which its C++ part writes past Python, is heard only when it fails."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except UserError:
            raise
        except BaseException:
            said.seek(0)
            os.write(kept, said.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _cpus(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
