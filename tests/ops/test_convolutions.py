"""Each convolution gives what the layer it stands for gives, and its gradients, to float64's
precision.
"""

from copy import deepcopy

import pytest
import torch
from machine import needs_bfloat16
from torch import Tensor, nn

from igd.ops import convolutions
from igd.ops.convolutions import (
    Convolution3x3,
    EnlargingConvolution,
    PointConvolution,
    Transposed3x3,
    weight_gradient,
)

Pair = tuple[nn.Module, nn.Module, int]


def kept(in_channels: int, out_channels: int, stride: int, side: int) -> Pair:
    usual = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
    return Convolution3x3(in_channels, out_channels, stride), usual, side


def transposed(in_channels: int, out_channels: int, stride: int, side: int) -> Pair:
    usual = nn.ConvTranspose2d(
        in_channels, out_channels, 3, stride, 1, output_padding=stride - 1, bias=False
    )
    return Transposed3x3(in_channels, out_channels, stride), usual, side


PAIRS: dict[str, Pair] = {
    **{
        f"{make.__name__}, {side} x {side}, stride {stride}": make(3, 5, stride, side)
        for make in (kept, transposed)
        for stride in (1, 2)
        for side in (1, 2, 3, 4, 5, 8, 9)
    },
    "enlarging": (
        EnlargingConvolution(3, 5, bias=True),
        nn.Sequential(
            nn.Upsample(scale_factor=2), nn.ConvTranspose2d(3, 5, 7, 2, 3, output_padding=1)
        ),
        4,
    ),
    "enlarging, no bias": (
        EnlargingConvolution(3, 5, bias=False),
        nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.ConvTranspose2d(3, 5, 7, 2, 3, output_padding=1, bias=False),
        ),
        1,
    ),
    "1x1 with a stride": (PointConvolution(3, 5, 2), nn.Conv2d(3, 5, 1, 2, bias=False), 6),
}


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few channels are enough to learn by taps."""
    monkeypatch.setattr(convolutions, "WIDE", 3)


@pytest.mark.parametrize("layer", [Convolution3x3(3, 5), Transposed3x3(3, 5)])
@pytest.mark.parametrize(
    ("side", "learning", "wide", "times"),
    [(4, True, 3, 1), (4, False, 3, 0), (5, True, 3, 0), (4, True, 4, 0), (2, True, 4, 0)],
)
def test_wide_layers_learn_by_taps_where_maps_are_small(
    layer: nn.Module,
    side: int,
    learning: bool,
    wide: int,
    times: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(convolutions, "WIDE", wide)
    made: list[Tensor] = []
    monkeypatch.setattr(
        convolutions,
        "weight_gradient",
        lambda large, small, stride: made.append(small) or weight_gradient(large, small, stride),
    )
    feature = torch.rand(2, 3, side, side, requires_grad=True)
    deepcopy(layer).requires_grad_(learning)(feature).sum().backward()
    assert len(made) == times


@needs_bfloat16
@pytest.mark.parametrize("layer", [Convolution3x3(3, 5), Transposed3x3(3, 5)])
@pytest.mark.parametrize("side", [2, 4])
def test_rounds_what_the_librarys_convolution_would_round(layer: nn.Module, side: int) -> None:
    feature = torch.rand(2, 3, side, side)
    exact = value_and_gradients(layer, feature)
    with torch.autocast("cpu", torch.bfloat16):
        value = layer(feature)
        rounded = value_and_gradients(layer, feature)
    assert value.dtype == torch.bfloat16
    for own, other in zip(exact[1:], rounded[1:], strict=True):
        assert other.dtype == torch.float32
        torch.testing.assert_close(own, other, rtol=0.05, atol=0.05)


def value_and_gradients(layer: nn.Module, feature: Tensor) -> list[Tensor]:
    feature = feature.clone(memory_format=torch.preserve_format).requires_grad_()
    value = layer(feature)
    weighted = value * torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value)
    return [value, *torch.autograd.grad(weighted.sum(), [feature, *layer.parameters()])]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", PAIRS)
def test_the_same_as_the_librarys(name: str, layout: torch.memory_format) -> None:
    ours, theirs, side = PAIRS[name]
    ours, theirs = deepcopy(ours).double().to(memory_format=layout), theirs.double()
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        other.data.copy_(own.data)
    feature = torch.rand(2, 3, side, side, dtype=torch.float64).contiguous(memory_format=layout)
    for own, other in zip(
        value_and_gradients(ours, feature), value_and_gradients(theirs, feature), strict=True
    ):
        torch.testing.assert_close(own, other)
    learnt = deepcopy(ours).requires_grad_(False)
    torch.testing.assert_close(learnt(feature), theirs(feature))
