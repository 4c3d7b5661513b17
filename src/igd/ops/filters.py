"""Linear filters of images: blurring, halving, resizing.

Each works on rows and on columns alike, so it is two matrix products, `rows @ image @ columns.T`.
On a CPU that is several times as fast as depthwise convolution, pooling or interpolation
(benchmarks/similarity.py), needs no padding mode, and filters that follow each other are one
matrix. Where an image grows or shrinks, most of that matrix is 0, and `resize` multiplies by the
blocks of it that are not.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Mode = Literal["bilinear", "bicubic"]
BLOCK = 64  # rows of a matrix that are multiplied together


def resize(images: Tensor, size: tuple[int, int], mode: Mode, sigma: float = 0.0) -> Tensor:
    """Images or maps (..., h, w) at another height and width, blurred there by a Gaussian of
    `sigma` pixels.
    """
    rows, columns = (
        blocks(length, wanted, mode, sigma)
        for length, wanted in zip(images.shape[-2:], size, strict=True)
    )
    images = torch.cat(
        [block.to(images) @ images[..., first:last, :] for block, first, last in rows], dim=-2
    )
    return torch.cat(
        [images[..., first:last] @ block.to(images).T for block, first, last in columns], dim=-1
    )


def smooth(maps: Tensor, sigma: float) -> Tensor:
    """Maps (..., h, w) blurred by a Gaussian of `sigma` pixels; 0 leaves them as they are."""
    return resize(maps, (maps.shape[-2], maps.shape[-1]), "bilinear", sigma) if sigma else maps


def halve(images: Tensor) -> Tensor:
    """Images (..., h, w) of half the height and width, rounded up: means of 2 x 2 pixels."""
    rows, columns = (halving_matrix(length).to(images) for length in images.shape[-2:])
    return rows @ images @ columns.T


@cache
def blocks(length: int, wanted: int, mode: Mode, sigma: float) -> list[tuple[Tensor, int, int]]:
    """`resizing_matrix` as some rows at a time, of which only the columns from the first to the
    last that counts are kept.

    Each pixel is made of its neighbours alone, and most of the matrix is 0.
    """
    cut = []
    for rows in resizing_matrix(length, wanted, mode, sigma).split(BLOCK):
        counting = rows.any(dim=0).nonzero()
        first, last = int(counting[0]), int(counting[-1]) + 1
        cut.append((rows[:, first:last], first, last))
    return cut


@cache
def resizing_matrix(length: int, wanted: int, mode: Mode, sigma: float) -> Tensor:
    """What resizing, then blurring does along an axis: (wanted, length)."""
    matrix = torch.eye(length, dtype=torch.float64)
    if wanted != length:
        matrix = F.interpolate(
            matrix[None, None], (wanted, length), mode=mode, align_corners=False
        )[0, 0]
    return gaussian_matrix(wanted, 2 * round(4 * sigma) + 1, sigma) @ matrix if sigma else matrix


@cache
def halving_matrix(length: int) -> Tensor:
    """Row i averages pixels 2i and 2i + 1, as far as there are: (length / 2 rounded up, length)."""
    row = torch.arange((length + 1) // 2)[:, None]
    pair = (torch.arange(length)[None] // 2 == row).double()
    return pair / pair.sum(dim=1, keepdim=True)


@cache
def gaussian_matrix(length: int, window: int, sigma: float) -> Tensor:
    """A Gaussian window as a banded matrix, (length, length): row i averages the pixels around
    pixel i.

    Near an edge the window is cut and its weights rescaled, so that a constant stays what it is.
    """
    position = torch.arange(length, dtype=torch.float64)
    offset = position[:, None] - position[None, :]
    weight = torch.exp(-offset.square() / (2 * sigma**2)) * (offset.abs() <= window // 2)
    return weight / weight.sum(dim=1, keepdim=True)
