"""What the processes of one training tell each other, so that together they do what one would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def part(rows: Tensor, fabric: Fabric) -> Tensor:
    """This process's part of the samples, or of what goes with them: one in as many as there are
    processes.
    """
    return rows[fabric.global_rank :: fabric.world_size]


def summed(values: Tensor, fabric: Fabric) -> Tensor:
    """The sum over processes of what each has."""
    if fabric.world_size == 1:
        return values
    total = fabric.all_reduce(values, reduce_op="sum")
    assert isinstance(total, Tensor)
    return total


def gathered(rows: Tensor, fabric: Fabric) -> Tensor:
    """The rows (n, ...) of every process, which all have as many: (processes, n, ...)."""
    together = fabric.all_gather(rows)
    assert isinstance(together, Tensor)
    return together.reshape(-1, *rows.shape)


def neighbours(latent: Tensor, count: int, fabric: Fabric) -> Tensor:
    """Of each latent of this process's `part` of `count`, the one before it in the whole batch; the
    last is before the first.
    """
    if fabric.world_size == 1:
        return latent.roll(1, dims=0)
    most = -(-count // fabric.world_size)
    padded = F.pad(latent, (0, 0, 0, most - len(latent)))
    everyone: Tensor = _Gathered.apply(padded, fabric)
    before = (part(torch.arange(count), fabric) - 1) % count
    return everyone[before % fabric.world_size, before // fabric.world_size]


class _Gathered(torch.autograd.Function):
    """`gathered`, through which every process's gradient finds its way back to the rows' owner."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, fabric: Fabric) -> Tensor:
        ctx.fabric = fabric
        return gathered(rows, fabric)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        whole = summed(gradients[0].contiguous(), ctx.fabric)
        return whole[ctx.fabric.global_rank], None
