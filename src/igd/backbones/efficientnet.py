"""EfficientNet-Lite: a small ImageNet network of plain convolutions, here without its classifier.

A frozen network's normalisation is an affine map of each channel, so it is folded into the
convolution before it when the weights are read: what is left are convolutions with a bias and
clipped activations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPSILON = 1e-3  # of the normalisation layers the published weights were trained with
MEAN, STD = 127.0 / 255, 128.0 / 255  # of the pixels, in [0, 1], that it was trained on


@dataclass(frozen=True)
class Stage:
    """A run of blocks; the first of them changes the side and the channels."""

    kernel: int
    repeats: int
    channels: int
    stride: int
    expansion: int


STAGES = (
    Stage(3, 1, 16, 1, 1),
    Stage(3, 2, 24, 2, 6),
    Stage(5, 2, 40, 2, 6),
    Stage(3, 3, 80, 2, 6),
    Stage(5, 3, 112, 1, 6),
    Stage(5, 4, 192, 2, 6),
    Stage(3, 1, 320, 1, 6),
)
STEM, HEAD = 32, 1280  # channels, whatever the width
WIDTHS_AND_DEPTHS = {
    "efficientnet_lite0": (1.0, 1.0),
    "efficientnet_lite1": (1.0, 1.1),
    "efficientnet_lite2": (1.1, 1.2),
}


class SameConv2d(nn.Conv2d):
    """A convolution that pads as TensorFlow does: the output's side is the input's over the stride,
    rounded up.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel,
            stride,
            kernel // 2 if stride == 1 else 0,
            groups=groups,
        )

    def forward(self, feature: Tensor) -> Tensor:
        step, kernel = self.stride[0], self.kernel_size[0]
        if step > 1:
            needed = [
                max((math.ceil(side / step) - 1) * step + kernel - side, 0)
                for side in feature.shape[:1:-1]
            ]
            feature = F.pad(
                feature, [part for pad in needed for part in (pad // 2, pad - pad // 2)]
            )
        return super().forward(feature)


class Block(nn.Module):
    """Widen, convolve each channel by itself, narrow; with a shortcut where the shape stays."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        wide = in_channels * expansion
        self.expand = SameConv2d(in_channels, wide, 1) if expansion > 1 else None
        self.depthwise = SameConv2d(wide, wide, kernel, stride, groups=wide)
        self.project = SameConv2d(wide, out_channels, 1)
        self.shortcut = stride == 1 and in_channels == out_channels

    def forward(self, feature: Tensor) -> Tensor:
        wide = feature if self.expand is None else F.relu6(self.expand(feature))
        narrow: Tensor = self.project(F.relu6(self.depthwise(wide)))
        return narrow + feature if self.shortcut else narrow


class EfficientNetLite(nn.Module):
    """(b, 3, h, w) -> the output of every block, and of the head."""

    def __init__(self, width: float, depth: float) -> None:
        super().__init__()
        self.stem = SameConv2d(3, STEM, 3, 2)
        blocks = list(_blocks(width, depth))
        self.blocks = nn.ModuleList(blocks)
        self.channels = [block.project.out_channels for block in blocks]
        self.head: SameConv2d | None = SameConv2d(self.channels[-1], HEAD, 1)

    def maps(self, image: Tensor) -> list[Tensor]:
        """The output of every block, in order."""
        feature, maps = F.relu6(self.stem(image)), []
        for block in self.blocks:
            feature = block(feature)
            maps.append(feature)
        return maps

    def pool(self, last: Tensor) -> Tensor:
        """The vector that the classifier would see, from the last block's output: (b, 1280)."""
        assert self.head is not None
        return F.relu6(self.head(last)).mean(dim=(2, 3))

    def end_after(self, last: int) -> None:
        """Forget every layer behind block number `last`."""
        self.blocks = self.blocks[: last + 1]
        self.head = None


def _blocks(width: float, depth: float) -> Iterator[Block]:
    in_channels = STEM
    for number, stage in enumerate(STAGES):
        out_channels = _rounded(stage.channels * width)
        fixed = number in (0, len(STAGES) - 1)  # their depth does not grow
        for repeat in range(stage.repeats if fixed else math.ceil(stage.repeats * depth)):
            yield Block(
                in_channels,
                out_channels,
                stage.kernel,
                stage.stride if repeat == 0 else 1,
                stage.expansion,
            )
            in_channels = out_channels


def _rounded(channels: float) -> int:
    """The nearest multiple of 8, but never less than nine tenths of what was asked for."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest


def folded_parameters(published: dict[str, Tensor]) -> dict[str, Tensor]:
    """Published parameters (`_conv_stem`, `_bn0`, ...) under our names, each normalisation folded
    into its convolution.
    """
    ours = {}
    for name, weight in published.items():
        layers, _, what = name.rpartition(".")
        place, _, layer = layers.rpartition(".")
        if layer not in _FOLDED or what != "weight":
            continue
        called, normalised_by = _FOLDED[layer]
        own = f"{place}." if place else ""
        norm = f"{own}{normalised_by}"
        target = f"{own.removeprefix('_')}{called}"
        gain = published[f"{norm}.weight"] / torch.sqrt(published[f"{norm}.running_var"] + EPSILON)
        ours[f"{target}.weight"] = weight * gain.view(-1, 1, 1, 1)
        ours[f"{target}.bias"] = (
            published[f"{norm}.bias"] - published[f"{norm}.running_mean"] * gain
        )
    return ours


_FOLDED = {  # a published convolution: what it is called here, and the normalisation after it
    "_conv_stem": ("stem", "_bn0"),
    "_conv_head": ("head", "_bn1"),
    "_expand_conv": ("expand", "_bn0"),
    "_depthwise_conv": ("depthwise", "_bn1"),
    "_project_conv": ("project", "_bn2"),
}
