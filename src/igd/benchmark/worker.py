"""A process that carries out one run and tells the process that started it how it ended."""

from __future__ import annotations

import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from igd.benchmark.runs import Run
from igd.errors import Interrupted, UserError


def work(described: dict[str, Any], path: Path, checkpoint: Path, threads: int, connection: Connection) -> None:
    """Carry out the run with so many threads; anything that arrives, or the end of the other process, is a wish to stop."""
    import torch
    from threadpoolctl import threadpool_limits

    from igd.benchmark.method import Support
    from igd.benchmark.trial import carry_out

    torch.set_num_threads(threads)
    support = Support(checkpoint, stop=connection.poll)
    try:
        with threadpool_limits(threads):
            ended = ("done", carry_out(Run.from_json(described), path, support))
    except Interrupted:
        ended = ("stopped", {})
    except UserError as error:
        checkpoint.unlink(missing_ok=True)  # it may be what is at fault, and the next attempt must not meet it again
        ended = ("failed", {"error": str(error)})
    except Exception as error:
        ended = ("failed", {"error": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"})
    with suppress(OSError):  # nobody may be there any more
        connection.send(ended)
