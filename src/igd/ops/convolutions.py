"""Convolutions whose sums are taken in another order, where PyTorch's own are slow on a CPU, or
wrong.

Each has the parameters, their names and the result of the layer it stands for;
benchmarks/training_step.py measures what they, and everything else, gain in a step of training.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TINY = (2, 2)  # size of a map on which every position reaches every other through a 3x3 kernel


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


class KeepingConvolution(nn.Conv2d):
    """A 3x3 convolution that keeps the size of the map; on a map of 2 x 2, while it learns, a
    matrix product.

    There 20 of the 36 products of each pair of channels are with the padding.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, 3, 1, 1, bias=False)

    def forward(self, feature: Tensor) -> Tensor:
        if not _dense(feature, self.weight):
            return super().forward(feature)
        flat = feature.permute(0, 2, 3, 1).flatten(1)
        made = F.linear(flat, _between_positions(self.weight))
        return made.view(len(feature), self.out_channels, *TINY).contiguous(
            memory_format=torch.channels_last
        )


class KeepingTransposed(nn.ConvTranspose2d):
    """`KeepingConvolution` transposed."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, 3, 1, 1, bias=False)

    def forward(self, feature: Tensor, output_size: list[int] | None = None) -> Tensor:
        if not _dense(feature, self.weight):
            return super().forward(feature, output_size)
        made = feature.contiguous().flatten(1) @ _between_positions(self.weight)
        return made.view(len(feature), *TINY, self.out_channels).permute(0, 3, 1, 2)


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


def _dense(feature: Tensor, weight: Tensor) -> bool:
    """Weights that have learnt keep to the convolution: for one image it is faster, and an exporter
    knows it by name.
    """
    return weight.requires_grad and weight.device.type == "cpu" and feature.shape[-2:] == TINY


def _between_positions(weight: Tensor) -> Tensor:
    """The weight between each two positions of a tiny map: (m, n, 3, 3) -> (4 m, 4 n); some weights
    join several pairs.
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
