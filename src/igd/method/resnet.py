"""ResNet18 and its blocks, forwards and in reverse, with normalisation of one mode.

Normalisation layers use statistics that are measured once, on training data, and then stay: the
latents of training, of the E-step and of scoring come from the same function, whatever else is in
the batch.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.ops.convolutions import Convolution3x3, PointConvolution, Transposed3x3

Stem = Literal["imagenet", "small"]

STAGES = 4  # of ResNet18: each but the first halves the side and doubles the channels


class Normalisation(nn.BatchNorm2d):
    """Batch normalisation's parameters and names, with statistics that only `measure_statistics`
    changes, unless an encoder is trained alone: then each batch is normalised by its own, and what
    was usual is kept (`normalise_by_batch`).

    Without `bias` it scales and never shifts, so that a network of such layers maps no two images
    to one point by ignoring them: what DSVDD asks for.
    """

    measuring = False
    by_batch = False  # while training

    def __init__(self, channels: int, bias: bool = True) -> None:
        super().__init__(channels)
        if not bias:
            self.register_parameter("bias", None)

    def forward(self, feature: Tensor) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        if self.measuring:
            variance, mean = torch.var_mean(feature.detach().float(), dim=(0, 2, 3), correction=0)
            if self.bias is None:
                mean, variance = torch.zeros_like(mean), variance + mean.square()
            self.running_mean.copy_(mean)
            self.running_var.copy_(variance)
        own = self.by_batch and self.training
        return F.batch_norm(
            feature,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            own,
            self.momentum or 0.0,
            self.eps,
        )


@torch.no_grad()
def measure_statistics(network: nn.Module, *inputs: Tensor) -> None:
    """Set the statistics of every normalisation layer from one representative batch, layer after
    layer.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, Normalisation)]
    for layer in layers:
        layer.measuring = True
    try:
        network(*inputs)
    finally:
        for layer in layers:
            layer.measuring = False


def normalise_by_batch(network: nn.Module) -> None:
    """Let every normalisation layer use each batch's own statistics while the network trains, as
    usual elsewhere.

    EM can't: there, mu and sigma are of latents that must not depend on which images share a batch.
    """
    for layer in network.modules():
        if isinstance(layer, Normalisation):
            layer.by_batch = True


class Block(nn.Module):
    """ResNet's basic block, with torchvision's parameter names."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, bias: bool) -> None:
        super().__init__()
        self.conv1 = Convolution3x3(in_channels, out_channels, stride)
        self.bn1 = Normalisation(out_channels, bias)
        self.conv2 = Convolution3x3(out_channels, out_channels)
        self.bn2 = Normalisation(out_channels, bias)
        self.downsample = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(
                PointConvolution(in_channels, out_channels, stride),
                Normalisation(out_channels, bias),
            )

    def forward(self, feature: Tensor) -> Tensor:
        shortcut = feature if self.downsample is None else self.downsample(feature)
        feature = F.relu(self.bn1(self.conv1(feature)), inplace=True)
        return F.relu(self.bn2(self.conv2(feature)) + shortcut, inplace=True)


class ReverseBlock(nn.Module):
    """The basic block backwards: the convolution that kept the size first, then the one that
    changes it.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int, bias: bool) -> None:
        super().__init__()
        self.conv1 = Convolution3x3(in_channels, in_channels)
        self.bn1 = Normalisation(in_channels, bias)
        self.conv2 = Transposed3x3(in_channels, out_channels, stride)
        self.bn2 = Normalisation(out_channels, bias)
        self.upsample = None
        if stride != 1 or in_channels != out_channels:
            shortcut = [
                nn.Conv2d(in_channels, out_channels, 1, bias=False),
                Normalisation(out_channels, bias),
            ]
            self.upsample = nn.Sequential(*shortcut, nn.Upsample(scale_factor=stride))

    def forward(self, feature: Tensor) -> Tensor:
        shortcut = feature if self.upsample is None else self.upsample(feature)
        feature = F.relu(self.bn1(self.conv1(feature)), inplace=True)
        return F.relu(self.bn2(self.conv2(feature)) + shortcut, inplace=True)


def stem_for(side: int) -> Stem:
    """ImageNet's stem divides the side by 4 before the first block; small images can only afford
    half of that.
    """
    return "imagenet" if side > 64 else "small"


def reduction(stem: Stem) -> int:
    """How much shorter the last feature map's side is than the image's."""
    return (4 if stem == "imagenet" else 2) << (STAGES - 1)


class ResNet18(nn.Module):
    """ResNet18 without its classifier, with torchvision's parameter names: (b, c, h, w) -> (b, 8
    width).
    """

    def __init__(
        self, channels: int = 3, width: int = 64, stem: Stem = "imagenet", bias: bool = True
    ) -> None:
        super().__init__()
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1)
        else:
            self.conv1 = nn.Conv2d(channels, width, 3, 2, 1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = Normalisation(width, bias)
        out_channels = width
        for stage in range(STAGES):
            in_channels, out_channels = out_channels, width * 2**stage
            stride = 1 if stage == 0 else 2
            blocks = nn.Sequential(
                Block(in_channels, out_channels, stride, bias),
                Block(out_channels, out_channels, 1, bias),
            )
            setattr(self, f"layer{stage + 1}", blocks)
        self.channels = [width * 2 ** (block // 2) for block in range(2 * STAGES)]
        self.features = out_channels
        initialise(self)

    def maps(self, image: Tensor) -> list[Tensor]:
        """The output of every block, in order."""
        feature, maps = self.maxpool(F.relu(self.bn1(self.conv1(image)), inplace=True)), []
        for stage in range(STAGES):
            for block in getattr(self, f"layer{stage + 1}"):
                feature = block(feature)
                maps.append(feature)
        return maps

    def end_after(self, last: int) -> None:
        """Forget every layer behind block number `last`."""
        for stage in range(STAGES):
            blocks = getattr(self, f"layer{stage + 1}")
            setattr(self, f"layer{stage + 1}", blocks[: max(0, last + 1 - 2 * stage)])

    def pool(self, last: Tensor) -> Tensor:
        """The vector made of the last block's output: (b, 8 width)."""
        return last.mean(dim=(2, 3))

    def forward(self, image: Tensor) -> Tensor:
        return self.pool(self.maps(image)[-1])


def initialise(network: nn.Module) -> None:
    """He initialisation of every convolution."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(
                layer.weight,
                mode="fan_out" if isinstance(layer, nn.Conv2d) else "fan_in",
                nonlinearity="relu",
            )
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
