"""Each convolution gives what the layer it stands for gives, and its gradients, to float64's
precision.
"""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from igd.ops import convolutions
from igd.ops.convolutions import (
    EnlargingConvolution,
    KeepingConvolution,
    KeepingTransposed,
    PointConvolution,
    _between_positions,
)

PAIRS: dict[str, tuple[nn.Module, nn.Module, int]] = {
    "2 x 2": (KeepingConvolution(3, 5), nn.Conv2d(3, 5, 3, 1, 1, bias=False), 2),
    "4 x 4": (KeepingConvolution(3, 5), nn.Conv2d(3, 5, 3, 1, 1, bias=False), 4),
    "2 x 2, transposed": (
        KeepingTransposed(3, 5),
        nn.ConvTranspose2d(3, 5, 3, 1, 1, bias=False),
        2,
    ),
    "4 x 4, transposed": (
        KeepingTransposed(3, 5),
        nn.ConvTranspose2d(3, 5, 3, 1, 1, bias=False),
        4,
    ),
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


@pytest.mark.parametrize("layer", [KeepingConvolution(3, 5), KeepingTransposed(3, 5)])
@pytest.mark.parametrize(("side", "learning", "times"), [(2, True, 1), (2, False, 0), (4, True, 0)])
def test_a_tiny_map_is_a_matrix_product_while_weights_learn(
    layer: nn.Module, side: int, learning: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Tensor] = []
    monkeypatch.setattr(
        convolutions,
        "_between_positions",
        lambda weight: made.append(weight) or _between_positions(weight),
    )
    deepcopy(layer).requires_grad_(learning)(torch.rand(2, 3, side, side))
    assert len(made) == times


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
