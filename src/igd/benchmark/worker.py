"""A process that carries out runs, one after another, and tells the process that started it how each ended."""

from __future__ import annotations

import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from igd.benchmark.runs import Run
from igd.errors import Interrupted, UserError
from igd.progress import Progress

STOP = "stop"
DOING = "doing"


def work(path: Path, threads: int, feature_cache: Path | None, connection: Connection) -> None:
    """Carry out what arrives, (run, checkpoint) each; anything that arrives meanwhile is a wish to stop.

    The end of the other process is one too: what a run has learnt is then kept for the next attempt, and this process ends.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    with threadpool_limits(threads), suppress(EOFError, OSError):  # nobody is there any more
        while (task := connection.recv()) != STOP:
            described, checkpoint = task
            connection.send(_attempt(Run.from_json(described), path, checkpoint, feature_cache, connection))


class _Telling(Progress):
    """Tells the other process what is being done, at each beginning and then once a second at most."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def start(self, total: int, doing: str, done: int = 0) -> None:
        self.total, self.doing, self.done = total, doing, done
        self._tell()

    def advance(self, **figures: float) -> None:
        self.done += 1
        if time.monotonic() > self.told_at + 1:
            self._tell()

    def _tell(self) -> None:
        self.told_at = time.monotonic()
        with suppress(OSError):  # nobody is there any more; the run hears of it when it asks whether to stop
            self.connection.send((DOING, {DOING: f"{self.doing} {self.done / max(1, self.total):.0%}"}))


def _attempt(
    run: Run, path: Path, checkpoint: Path, feature_cache: Path | None, connection: Connection
) -> tuple[str, dict[str, Any]]:
    from igd.benchmark.method import Support
    from igd.benchmark.trial import carry_out

    try:
        return "done", carry_out(run, path, Support(checkpoint, feature_cache, _Telling(connection), connection.poll))
    except Interrupted:
        return "stopped", {}
    except UserError as error:
        checkpoint.unlink(missing_ok=True)  # it may be what is at fault, and the next attempt must not meet it again
        return "failed", {"error": str(error)}
    except Exception as error:
        return "failed", {"error": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"}
