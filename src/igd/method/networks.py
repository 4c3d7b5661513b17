"""Encoder (ResNet18 and a linear layer), decoder (its reverse) and critic."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from igd.method.balance import Limit, share_latent
from igd.method.interpolation import interpolate_latents
from igd.method.resnet import STAGES, ResNet18, ReverseBlock, Stem, initialise, reduction, stem_for
from igd.ops.convolutions import (
    EnlargingConvolution,
)


class Encoder(nn.Module):
    """z = f_psi(x): a backbone and a linear layer to the latent space.

    The backbone is ResNet18, or nothing at all where its input are features that a frozen one made
    of the image.
    """

    def __init__(
        self, backbone: nn.Module, features: int, latent_size: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.linear = nn.Linear(features, latent_size, bias=bias)

    def forward(self, encoder_input: Tensor) -> Tensor:
        latent: Tensor = self.linear(self.backbone(encoder_input))
        return latent

    def with_maps(self, image: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The latent of images, and the output of every block on the way to it."""
        backbone = cast(ResNet18, self.backbone)
        maps = backbone.maps(image)
        return self.linear(backbone.pool(maps[-1])), maps


class Decoder(nn.Module):
    """x_hat = g_phi(z): the encoder in reverse, from the latent to an image of the given side."""

    def __init__(
        self, side: int, channels: int, width: int, latent_size: int, stem: Stem, bias: bool = True
    ) -> None:
        super().__init__()
        in_channels = width * 2 ** (STAGES - 1)
        self.start = (in_channels, side // reduction(stem), side // reduction(stem))
        self.linear = nn.Linear(
            latent_size, self.start[0] * self.start[1] * self.start[2], bias=bias
        )
        stages: list[nn.Module] = []
        for stage in reversed(range(STAGES)):
            out_channels = width * 2 ** max(stage - 1, 0)
            stride = 1 if stage == 0 else 2
            stages += [
                ReverseBlock(in_channels, in_channels, 1, bias),
                ReverseBlock(in_channels, out_channels, stride, bias),
            ]
            in_channels = out_channels
        self.stages = nn.Sequential(*stages)
        self.image: nn.ConvTranspose2d = (
            EnlargingConvolution(in_channels, channels, bias)
            if stem == "imagenet"
            else nn.ConvTranspose2d(in_channels, channels, 3, 2, 1, output_padding=1, bias=bias)
        )
        initialise(self)
        # The first reconstructions are near the mean image.
        nn.init.normal_(self.image.weight, std=0.02)

    def forward(self, latent: Tensor) -> Tensor:
        feature = F.relu(self.linear(latent)).unflatten(1, self.start)
        reconstruction: Tensor = self.image(self.stages(feature))
        return reconstruction


class Critic(nn.Module):
    """alpha_hat = d_eta(x): the share of z_1 in what x was decoded from; eq. 9, (b, c, h, w) ->
    (b,).
    """

    def __init__(self, side: int, channels: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        in_channels, out_channels = channels, width
        while side > 4:
            layers += [
                nn.Conv2d(in_channels, out_channels, 3, 2, 1),
                nn.LeakyReLU(0.2, inplace=True),
            ]
            in_channels, out_channels, side = (
                out_channels,
                min(2 * out_channels, 4 * width),
                (side + 1) // 2,
            )
        last = nn.Conv2d(in_channels, 1, 3, 1, 1)
        self.layers = nn.Sequential(*layers, last)
        initialise(self)
        # A critic that starts with large errors would drown the other losses.
        nn.init.zeros_(last.weight)

    def forward(self, image: Tensor) -> Tensor:
        prediction: Tensor = self.layers(image)
        return prediction.mean(dim=(1, 2, 3))


class Decoded(NamedTuple):
    """What one pass through the auto-encoder gives; each image is encoded once and each latent
    decoded once.
    """

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
        features: int
        # Length of the vectors that a frozen backbone makes; None: the encoder reads images.
        | None = None,
    ) -> None:
        super().__init__()
        stem = stem_for(side)
        backbone = ResNet18(channels, width, stem, bias) if features is None else nn.Identity()
        self.encoder = Encoder(backbone, features or 8 * width, latent_size, bias)
        self.decoder = Decoder(side, channels, width, latent_size, stem, bias)

    def forward(
        self,
        encoder_input: Tensor,
        alpha: Tensor | None = None,
        decode: bool = True,
        limit: Limit | None = None,
        neighbours: Callable[[Tensor], Tensor] | None = None,
    ) -> Decoded:
        """Encode images, or their features, decode and, given alpha, decode the latents that are
        interpolated with their neighbours, by default those in this batch, in the same pass.
        """
        latent = self.encoder(encoder_input)
        if not decode:
            return Decoded(latent, None, None)
        latent, classified = share_latent(latent, limit)
        if alpha is None:
            return Decoded(classified, self.decoder(latent), None)
        neighbour = None if neighbours is None else neighbours(latent)
        both = self.decoder(torch.cat([latent, interpolate_latents(latent, alpha, neighbour)]))
        reconstruction, interpolation = both.chunk(2)
        return Decoded(classified, reconstruction, interpolation)
