"""Where work is done: in this process, or on a Ray cluster."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager

from igd.errors import UserError

LOCAL, RAY = "local", "ray"


def add_engine_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--engine",
        choices=(LOCAL, RAY),
        default=LOCAL,
        help="ray: spread over the workers of a Ray cluster (docs/scale.md; default: %(default)s)",
    )
    command.add_argument(
        "--address",
        help="of a Ray cluster that runs already, such as auto or 10.0.0.1:6379 (default: one on "
        "this machine, for this command)",
    )
    command.add_argument(
        "--workers", type=int, help="processes of the engine ray, a core each (default: all cores)"
    )


def check_engine(options: argparse.Namespace) -> None:
    """Refuse what has no effect, and an engine that is not installed."""
    if options.engine == LOCAL:
        for name in ("address", "workers"):
            if getattr(options, name) is not None:
                raise UserError(f"--{name} has no effect without --engine ray")
        return
    from igd.engines.cluster import check_installed

    check_installed()


def ray_cluster(options: argparse.Namespace) -> AbstractContextManager[int]:
    """The cluster that the flags ask for, for as long as it is needed; its number of workers."""
    from igd.engines.cluster import cluster

    return cluster(options.address, options.workers, options.verbose)
