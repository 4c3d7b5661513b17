"""Rows of numbers that come batch after batch, in one tensor that doubles when it is full.

A list of the batches would do, but for the memory: each small tensor kept while large ones come and go stays in the middle of
the heap, which then never shrinks. calibrating on 4,000 images left up to 1.8 GB of holes that way.
"""

from __future__ import annotations

import torch
from torch import Tensor

FIRST = 256  # rows that there is room for at once


class Rows:
    """
    >>> rows = Rows()
    >>> rows.add(torch.ones(2, 3))
    >>> rows.add(torch.zeros(1, 3))
    >>> rows.all.shape
    torch.Size([3, 3])
    """

    def __init__(self) -> None:
        self._room, self._count = torch.empty(0), 0

    def add(self, rows: Tensor) -> None:
        """Keep a copy of these, (n, ...), below those that came before."""
        count = self._count + len(rows)
        if count > len(self._room):
            room = rows.new_empty((max(count, 2 * len(self._room), FIRST), *rows.shape[1:]))
            if self._count:
                room[: self._count] = self.all
            self._room = room
        self._room[self._count : count] = rows
        self._count = count

    @property
    def all(self) -> Tensor:
        """All that came, in order; valid until more comes."""
        return self._room[: self._count]
