"""One training in several processes: Lightning Fabric connects them, torchrun's launcher starts
them.

Every process reads all images and holds the same state. Batches and the backbone's pass over the
images are divided, and what each makes of its part is put together: features row by row, moments of
latents by merging them, gradients by their sum. So the result is that of one process on the same
batches, and a checkpoint, which the first process writes, serves any number of them.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from igd.cpu import cores, require_bfloat16
from igd.errors import Interrupted, UserError
from igd.method.collective import gathered, summed

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LAUNCHED = "TORCHELASTIC_RUN_ID"  # torchrun tells its processes so
HERE = "127.0.0.1"


def is_launched() -> bool:
    """Whether torchrun started this process, or we did."""
    return LAUNCHED in os.environ


def make_fabric(device: str, precision: str) -> Fabric:
    """Where to train, and how exactly; under torchrun, together with its other processes."""
    from lightning_fabric import Fabric  # a third of the time that importing a detector would take
    from lightning_fabric.strategies.ddp import DDPStrategy
    from torch.nn import Module

    class Together(DDPStrategy):
        """DDP's processes and collectives without its wrapper, which knows no step that trains one
        network through another: `method/m_step.py` sums the gradients.
        """

        def setup_module(self, module: Module) -> Module:  # type: ignore[override]
            return module

    if device != "cuda":
        require_bfloat16(precision)
    if not is_launched():
        shared: dict[str, Any] = {"devices": 1}
    else:
        here = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // here
        shared = {"devices": here, "num_nodes": nodes, "strategy": Together()}
        warnings.filterwarnings("ignore", message=".*all_gather is deprecated")
    try:
        with _quiet():
            fabric = Fabric(accelerator=device, precision=precision, **shared)  # type: ignore[arg-type]
            if is_launched():
                fabric.launch()
    except Exception as error:  # whatever Fabric says about a device or a precision it can't have
        raise UserError(
            f"device {device!r} with precision {precision!r} can't be used here: {error}"
        ) from None
    if is_launched() and device == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, cores() // shared["devices"]))
    return fabric


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what Lightning says of itself."""
    talkative = [
        logging.getLogger(f"lightning_fabric{part}") for part in ("", ".utilities.distributed")
    ]
    levels = [each.level for each in talkative]
    for each in talkative:
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, level in zip(talkative, levels, strict=True):
            each.setLevel(level)


def gathered_rows(fabric: Fabric, rows: Tensor, counts: list[int]) -> list[Tensor]:
    """The rows of every process that has some, by how many each has."""
    padded = F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, max(counts) - len(rows)))
    together = gathered(padded, fabric)
    return [together[process, :count] for process, count in enumerate(counts)]


def any_of(fabric: Fabric | None, wish: bool) -> bool:
    """Whether some process has this wish: all of them then do the same."""
    if fabric is None or fabric.world_size == 1:
        return wish
    return bool(summed(torch.tensor(float(wish)), fabric) > 0)


def launch(command: list[str], devices: int, nodes: int) -> int:
    """Run Python with these arguments in `devices` processes here, and on each of `nodes` machines
    that do the same; the exit code.

    Several machines find each other by MASTER_ADDR, MASTER_PORT and NODE_RANK, as torchrun's do.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    if devices < 1 or nodes < 1:
        raise UserError(f"devices is {devices} and nodes {nodes}; there is at least one of each")
    for name in ("MASTER_ADDR", "NODE_RANK"):
        if nodes > 1 and name not in os.environ:
            raise UserError(
                f"--nodes {nodes} needs {name} in the environment of each machine: MASTER_ADDR is "
                f"the first one's address, NODE_RANK counts them from 0"
            )
    if nodes == 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # nobody else is asked in
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # its table of codes
    address = os.environ.get("MASTER_ADDR", HERE) if nodes > 1 else HERE
    port = os.environ.get("MASTER_PORT", "29400") if nodes > 1 else "0"
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=devices,
        run_id="igd",
        rdzv_backend="static" if nodes > 1 else "c10d",
        rdzv_endpoint=f"{address}:{port}",
        rdzv_configs={"rank": int(os.environ["NODE_RANK"])} if nodes > 1 else {},
        local_addr=None if nodes > 1 else HERE,
        max_restarts=0,
        monitor_interval=0.2,
    )
    try:
        elastic_launch(config, sys.executable)(*command)
    except SignalException:  # to all of them: each has said how to go on
        raise Interrupted("stopped; go on with --resume") from None
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode > 0:  # it has said why
            return int(failure.exitcode)
        raise RuntimeError(
            f"process {rank} of {devices * nodes} was killed (signal {-failure.exitcode}), and "
            f"the others ended; go on with --resume"
        ) from None
    return 0
