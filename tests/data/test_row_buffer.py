"""Batches of rows become one tensor, in order, whatever their sizes."""

import pytest
import torch

from igd.data.row_buffer import FIRST, RowBuffer


def test_all_rows_in_order_beyond_the_first_room() -> None:
    batches = [torch.rand(size, 3) for size in (0, 5, 0, FIRST, 1, 3 * FIRST)]
    rows = RowBuffer()
    for batch in batches:
        rows.add(batch)
    assert torch.equal(rows.all, torch.cat(batches))


def test_rows_are_copies() -> None:
    batch = torch.zeros(2)
    rows = RowBuffer()
    rows.add(batch)
    batch += 1
    assert torch.equal(rows.all, torch.zeros(2))


def test_no_rows_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="no rows"):
        _ = RowBuffer().all
