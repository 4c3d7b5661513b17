"""Convolutions whose sums are taken in another order, where PyTorch's own are slow on a CPU, or
wrong.

Each has the parameters, their names, the result and the gradients of the layer it stands for; those
that learn tap by tap have no gradients of gradients.
benchmarks/training_step.py measures what they, and everything else, gain in a step of training.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

TINY = (2, 2)  # size of a map on which every position reaches every other through a 3x3 kernel
# Weights learn tap by tap where the smaller map has sides up to this, and both maps this many
# channels at least; elsewhere the library's gradient is as fast.
SMALL, WIDE = 4, 128


class PointConvolution(nn.Conv2d):
    """A 1x1 convolution with a stride: pixels are left out first, then convolved without one.

    Left to the convolution, the stride makes oneDNN's backward pass write outside its memory for
    some shapes (torch 2.13, 8 to 16 channels, a batch of 53): a crash, or worse, none.
    """

    def __init__(self, in_channels: int, out_channels: int, skip: int) -> None:
        super().__init__(in_channels, out_channels, 1, bias=False)
        self.skip = skip

    def forward(self, feature: Tensor) -> Tensor:
        return super().forward(feature[:, :, :: self.skip, :: self.skip])


class Convolution3x3(nn.Conv2d):
    """A 3x3 convolution that keeps or divides the size of the map. Where maps are small, its
    weights learn tap by tap.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, 3, stride, 1, bias=False)

    def forward(self, feature: Tensor) -> Tensor:
        stride = self.stride[0]
        if not _learns_by_taps(feature, self.weight, stride):
            return super().forward(feature)
        return _learning_by_taps(feature, self.weight, stride)


class Transposed3x3(nn.ConvTranspose2d):
    """`Convolution3x3` transposed."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__(
            in_channels, out_channels, 3, stride, 1, output_padding=stride - 1, bias=False
        )

    def forward(self, feature: Tensor, output_size: list[int] | None = None) -> Tensor:
        if output_size is not None or not _learns_by_taps(feature, self.weight):
            return super().forward(feature, output_size)
        return _learning_by_taps(feature, self.weight, self.stride[0], transposed=True)


class EnlargingConvolution(nn.ConvTranspose2d):
    """Each position made 2 x 2, then a transposed 7x7 convolution that doubles the size: one 3x3
    convolution that makes all 4 x 4 pixels of a position side by side."""

    def __init__(self, in_channels: int, out_channels: int, bias: bool) -> None:
        super().__init__(in_channels, out_channels, 7, 2, 3, output_padding=1, bias=bias)

    def forward(self, feature: Tensor, output_size: list[int] | None = None) -> Tensor:  # noqa: ARG002
        in_channels, out_channels = self.weight.shape[:2]
        pixels = _pixels_of_a_position().to(self.weight)
        spread = (pixels @ self.weight @ pixels.T).view(in_channels, out_channels, 4, 3, 4, 3)
        kernel = spread.permute(1, 2, 4, 0, 3, 5).reshape(16 * out_channels, in_channels, 3, 3)
        bias = None if self.bias is None else self.bias.repeat_interleave(16)
        return F.pixel_shuffle(
            F.conv2d(
                feature, kernel.contiguous(memory_format=torch.channels_last), bias, padding=1
            ),
            4,
        )


class _LearningByTaps(torch.autograd.Function):
    """The convolution of (b, l, h, w) by (s, l, 3, 3), (b, s, h / stride, w / stride); transposed,
    of (b, s, h, w), (b, l, stride h, stride w).
    """

    @staticmethod
    def forward(ctx: Any, feature: Tensor, weight: Tensor, stride: int, transposed: bool) -> Tensor:
        weight = _between_positions(weight) if _tiny(feature, stride) else weight
        ctx.stride, ctx.transposed = stride, transposed
        ctx.save_for_backward(feature, weight)
        return (_up if transposed else _down)(feature, weight, stride)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        feature, weight = ctx.saved_tensors
        to_feature, to_weight, *_ = ctx.needs_input_grad
        back = _down if ctx.transposed else _up
        large, small = (gradient, feature) if ctx.transposed else (feature, gradient)
        return (
            back(gradient, weight, ctx.stride) if to_feature else None,
            weight_gradient(large, small, ctx.stride) if to_weight else None,
            None,
            None,
        )


def weight_gradient(large: Tensor, small: Tensor, stride: int) -> Tensor:
    """What each weight joins, summed: (b, l, h, w) and (b, s, h / stride, w / stride) to (s, l, 3,
    3).

    One matrix product a tap of the kernel, over the positions at which it does not read padding.
    """
    large, small = large.permute(0, 2, 3, 1), small.permute(0, 2, 3, 1)
    taps = []
    for row, column in product(range(3), range(3)):
        (above, rows), (left, columns) = (
            _joined(tap, long, short, stride)
            for tap, long, short in zip(
                (row, column), large.shape[1:3], small.shape[1:3], strict=True
            )
        )
        taps.append(small[:, rows, columns].flatten(0, 2).T @ large[:, above, left].flatten(0, 2))
    joined = torch.stack(taps, dim=1).view(small.shape[-1], 3, 3, large.shape[-1])
    return joined.permute(0, 3, 1, 2)


def _joined(tap: int, long: int, short: int, stride: int) -> tuple[slice, slice]:
    """The positions of the large and of the small map that a tap joins, along one axis."""
    first, end = int(tap == 0), min(short, (long - tap) // stride + 1)
    start = stride * first + tap - 1
    return slice(start, start + stride * (end - first - 1) + 1, stride), slice(first, end)


def _down(large: Tensor, weight: Tensor, stride: int) -> Tensor:
    """By a kernel, or by the matrix between the positions of tiny maps."""
    if weight.ndim == 4:
        return F.conv2d(large, weight, stride=stride, padding=1)
    made = F.linear(large.permute(0, 2, 3, 1).flatten(1), weight)
    return made.view(len(large), -1, *TINY).contiguous(memory_format=torch.channels_last)


def _up(small: Tensor, weight: Tensor, stride: int) -> Tensor:
    if weight.ndim == 4:
        return F.conv_transpose2d(
            small, weight, stride=stride, padding=1, output_padding=stride - 1
        )
    made = small.contiguous().flatten(1) @ weight
    return made.view(len(small), *TINY, -1).permute(0, 3, 1, 2)


def _tiny(feature: Tensor, stride: int) -> bool:
    """Whether every position reaches every other: all is one matrix product then. Of a convolution
    20 of the 36 products of each pair of channels would be with the padding.
    """
    return stride == 1 and feature.shape[-2:] == TINY


def _between_positions(weight: Tensor) -> Tensor:
    """The weight between each two positions of a tiny map: (s, l, 3, 3) -> (4 s, 4 l), channels
    first in rows, positions first in columns; some weights join several pairs.
    """
    pairs = weight.permute(0, 2, 3, 1).flatten(1, 2).index_select(1, _taps())
    return pairs.view(4 * weight.shape[0], 4 * weight.shape[1])


@cache
def _taps() -> Tensor:
    """Number in a 3x3 kernel of the weight between two positions of a tiny map, for each pair:
    (16,).
    """
    along = torch.arange(2)[None, :] - torch.arange(2)[:, None] + 1  # (from, to)
    return (3 * along[:, None, :, None] + along[None, :, None, :]).flatten()


def _learns_by_taps(feature: Tensor, weight: Tensor, stride: int = 1) -> bool:
    """Weights that have learnt keep to the library's convolution: an exporter knows it by name."""
    if not weight.requires_grad or weight.device.type != "cpu" or feature.ndim != 4:
        return False
    sides = feature.shape[-2:]
    small = all(side <= SMALL * stride and side % stride == 0 for side in sides)
    return small and min(weight.shape[:2]) >= WIDE


def _learning_by_taps(
    feature: Tensor, weight: Tensor, stride: int, transposed: bool = False
) -> Tensor:
    """Convolved, in the precision that PyTorch's convolution would read feature and weight in."""
    if torch.is_autocast_enabled("cpu") and weight.dtype != torch.float64:
        rounded = torch.get_autocast_dtype("cpu")
        feature, weight = feature.to(rounded), weight.to(rounded)
    made: Tensor = _LearningByTaps.apply(feature, weight, stride, transposed)
    return made


@cache
def _pixels_of_a_position() -> Tensor:
    """What a weight of the 7x7 kernel does along one axis: (4 pixels of a position * 3 positions
    around it, 7 weights).
    """
    # The middle one of three positions, each made two.
    impulse = torch.tensor([[[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]]])
    response = F.conv_transpose1d(
        impulse, torch.eye(7)[None], stride=2, padding=3, output_padding=1
    )
    return response.view(7, 3, 4).flip(1).permute(2, 1, 0).reshape(12, 7)
