"""Rows of numbers that come batch after batch, in one tensor that doubles when it is full.

A list of the batches would do, but for the memory: each small tensor kept while large ones come and
go stays in the middle of the heap, which then never shrinks. Calibrating on 4,000 images left more
than 1 GB of holes that way (benchmarks/growth.py).
"""

from __future__ import annotations

from torch import Tensor

FIRST = 256  # rows that there is room for at once


class RowBuffer:
    """Copies of batches of rows, one below the other.

    >>> import torch
    >>> rows = RowBuffer()
    >>> rows.add(torch.ones(2, 3))
    >>> rows.add(torch.zeros(1, 3))
    >>> rows.all.shape
    torch.Size([3, 3])
    """

    def __init__(self, expected: int = FIRST) -> None:
        self._expected = expected  # rows; there is room for so many from the start
        self._room: Tensor | None = None
        self._count = 0

    def add(self, rows: Tensor) -> None:
        """Keep a copy of these, (n, ...), below those that came before."""
        count = self._count + len(rows)
        if self._room is None:
            self._room = rows.new_empty((max(count, self._expected), *rows.shape[1:]))
        if count > len(self._room):
            room = rows.new_empty((max(count, 2 * len(self._room)), *rows.shape[1:]))
            room[: self._count] = self.all
            self._room = room
        self._room[self._count : count] = rows
        self._count = count

    @property
    def all(self) -> Tensor:
        """All that came, in order; valid until more comes."""
        if self._room is None:
            raise ValueError("no rows came")
        return self._room[: self._count]
