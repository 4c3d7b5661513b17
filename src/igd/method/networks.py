"""Encoder (ResNet18 and a linear layer), decoder (its reverse) and critic.

There is one mode. Normalisation layers use statistics that are measured once, on training data, and then stay: the latents
of training, of the E-step and of scoring come from the same function, whatever else is in the batch.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.method.balance import share_latent
from igd.method.convolutions import EnlargingConvolution, KeepingConvolution, KeepingTransposed, PointConvolution
from igd.method.interpolation import interpolate_latents

Stem = Literal["imagenet", "small"]
STAGES = 4  # of ResNet18: each but the first halves the side and doubles the channels


class Normalisation(nn.BatchNorm2d):
    """Batch normalisation's parameters and names, with statistics that only `measure_statistics` changes, unless an encoder
    is trained alone: then each batch is normalised by its own, and what was usual is kept (`normalise_by_batch`).

    Without `bias` it scales and never shifts, so that a network of such layers maps no two images to one point by
    ignoring them: what DSVDD asks for.
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
            feature, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum or 0.0, self.eps
        )


@torch.no_grad()
def measure_statistics(network: nn.Module, *inputs: Tensor) -> None:
    """Set the statistics of every normalisation layer from one representative batch, layer after layer."""
    layers = [layer for layer in network.modules() if isinstance(layer, Normalisation)]
    for layer in layers:
        layer.measuring = True
    try:
        network(*inputs)
    finally:
        for layer in layers:
            layer.measuring = False


def normalise_by_batch(network: nn.Module) -> None:
    """Let every normalisation layer use each batch's own statistics while the network trains, as usual elsewhere.

    EM can't: there, mu and sigma are of latents that must not depend on which images share a batch.
    """
    for layer in network.modules():
        if isinstance(layer, Normalisation):
            layer.by_batch = True


class Block(nn.Module):
    """ResNet's basic block, with torchvision's parameter names."""

    def __init__(self, inside: int, outside: int, stride: int, bias: bool) -> None:
        super().__init__()
        keeping = stride == 1
        self.conv1 = KeepingConvolution(inside, outside) if keeping else nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = Normalisation(outside, bias)
        self.conv2 = KeepingConvolution(outside, outside)
        self.bn2 = Normalisation(outside, bias)
        self.downsample = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(PointConvolution(inside, outside, stride), Normalisation(outside, bias))

    def forward(self, feature: Tensor) -> Tensor:
        shortcut = feature if self.downsample is None else self.downsample(feature)
        feature = F.relu(self.bn1(self.conv1(feature)), inplace=True)
        return F.relu(self.bn2(self.conv2(feature)) + shortcut, inplace=True)


class ReverseBlock(nn.Module):
    """The basic block backwards: the convolution that kept the size first, then the one that changes it."""

    def __init__(self, inside: int, outside: int, stride: int, bias: bool) -> None:
        super().__init__()
        self.conv1 = KeepingConvolution(inside, inside)
        self.bn1 = Normalisation(inside, bias)
        self.conv2: nn.ConvTranspose2d = (
            KeepingTransposed(inside, outside)
            if stride == 1
            else nn.ConvTranspose2d(inside, outside, 3, stride, 1, output_padding=stride - 1, bias=False)
        )
        self.bn2 = Normalisation(outside, bias)
        self.upsample = None
        if stride != 1 or inside != outside:
            shortcut = [nn.Conv2d(inside, outside, 1, bias=False), Normalisation(outside, bias)]
            self.upsample = nn.Sequential(*shortcut, nn.Upsample(scale_factor=stride))

    def forward(self, feature: Tensor) -> Tensor:
        shortcut = feature if self.upsample is None else self.upsample(feature)
        feature = F.relu(self.bn1(self.conv1(feature)), inplace=True)
        return F.relu(self.bn2(self.conv2(feature)) + shortcut, inplace=True)


def stem_for(side: int) -> Stem:
    """ImageNet's stem divides the side by 4 before the first block; small images can only afford half of that."""
    return "imagenet" if side > 64 else "small"


def reduction(stem: Stem) -> int:
    """How much shorter the last feature map's side is than the image's."""
    return (4 if stem == "imagenet" else 2) << (STAGES - 1)


class ResNet18(nn.Module):
    """ResNet18 without its classifier, with torchvision's parameter names: (b, c, h, w) -> (b, 8 width)."""

    def __init__(self, channels: int = 3, width: int = 64, stem: Stem = "imagenet", bias: bool = True) -> None:
        super().__init__()
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1)
        else:
            self.conv1 = nn.Conv2d(channels, width, 3, 2, 1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = Normalisation(width, bias)
        outside = width
        for stage in range(STAGES):
            inside, outside = outside, width * 2**stage
            stride = 1 if stage == 0 else 2
            blocks = nn.Sequential(Block(inside, outside, stride, bias), Block(outside, outside, 1, bias))
            setattr(self, f"layer{stage + 1}", blocks)
        self.channels = [width * 2 ** (block // 2) for block in range(2 * STAGES)]
        self.features = outside
        _initialise(self)

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


class Encoder(nn.Module):
    """z = f_psi(x): a backbone and a linear layer to the latent space.

    The backbone is ResNet18, or nothing at all where what it sees are the features that a frozen one made of the image.
    """

    def __init__(self, backbone: nn.Module, features: int, latent_size: int, bias: bool = True) -> None:
        super().__init__()
        self.backbone = backbone
        self.linear = nn.Linear(features, latent_size, bias=bias)

    def forward(self, seen: Tensor) -> Tensor:
        latent: Tensor = self.linear(self.backbone(seen))
        return latent


class Decoder(nn.Module):
    """x_hat = g_phi(z): the encoder in reverse, from the latent to an image of the given side."""

    def __init__(self, side: int, channels: int, width: int, latent_size: int, stem: Stem, bias: bool = True) -> None:
        super().__init__()
        inside = width * 2 ** (STAGES - 1)
        self.start = (inside, side // reduction(stem), side // reduction(stem))
        self.linear = nn.Linear(latent_size, self.start[0] * self.start[1] * self.start[2], bias=bias)
        stages: list[nn.Module] = []
        for stage in reversed(range(STAGES)):
            outside = width * 2 ** max(stage - 1, 0)
            stride = 1 if stage == 0 else 2
            stages += [ReverseBlock(inside, inside, 1, bias), ReverseBlock(inside, outside, stride, bias)]
            inside = outside
        self.stages = nn.Sequential(*stages)
        self.image: nn.ConvTranspose2d = (
            EnlargingConvolution(inside, channels, bias)
            if stem == "imagenet"
            else nn.ConvTranspose2d(inside, channels, 3, 2, 1, output_padding=1, bias=bias)
        )
        _initialise(self)
        nn.init.normal_(self.image.weight, std=0.02)  # the first reconstructions are near the mean image

    def forward(self, latent: Tensor) -> Tensor:
        feature = F.relu(self.linear(latent)).unflatten(1, self.start)
        reconstruction: Tensor = self.image(self.stages(feature))
        return reconstruction


class Critic(nn.Module):
    """alpha_hat = d_eta(x): which share of the second image is in this one; eq. 9, (b, c, h, w) -> (b,)."""

    def __init__(self, side: int, channels: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inside, outside = channels, width
        while side > 4:
            layers += [nn.Conv2d(inside, outside, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True)]
            inside, outside, side = outside, min(2 * outside, 4 * width), (side + 1) // 2
        last = nn.Conv2d(inside, 1, 3, 1, 1)
        self.layers = nn.Sequential(*layers, last)
        _initialise(self)
        nn.init.zeros_(last.weight)  # a critic that starts with large errors would drown the other losses

    def forward(self, image: Tensor) -> Tensor:
        prediction: Tensor = self.layers(image)
        return prediction.mean(dim=(1, 2, 3))


class Decoded(NamedTuple):
    """What one pass through the auto-encoder gives; each image is encoded once and each latent decoded once."""

    latent: Tensor
    reconstruction: Tensor | None
    interpolation: Tensor | None  # x_alpha, where an alpha was given


class AutoEncoder(nn.Module):
    """Encoder and decoder of one model of the paper."""

    def __init__(
        self,
        side: int,
        channels: int = 3,
        width: int = 64,
        latent_size: int = 128,
        bias: bool = True,
        features: int | None = None,  # length of the vectors that a frozen backbone makes; None: the encoder sees images
    ) -> None:
        super().__init__()
        stem = stem_for(side)
        backbone = ResNet18(channels, width, stem, bias) if features is None else nn.Identity()
        self.encoder = Encoder(backbone, features or 8 * width, latent_size, bias)
        self.decoder = Decoder(side, channels, width, latent_size, stem, bias)

    def forward(self, seen: Tensor, alpha: Tensor | None = None, decode: bool = True, limit: float | None = None) -> Decoded:
        """Encode images, or their features, decode and, given alpha, decode the interpolated latents in the same pass."""
        latent = self.encoder(seen)
        if not decode:
            return Decoded(latent, None, None)
        latent, classified = share_latent(latent, limit)
        if alpha is None:
            return Decoded(classified, self.decoder(latent), None)
        both = self.decoder(torch.cat([latent, interpolate_latents(latent, alpha)]))
        reconstruction, interpolation = both.chunk(2)
        return Decoded(classified, reconstruction, interpolation)


def _initialise(network: nn.Module) -> None:
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(
                layer.weight, mode="fan_out" if isinstance(layer, nn.Conv2d) else "fan_in", nonlinearity="relu"
            )
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
