"""A fitted state as one function of 8-bit colour pixels, in one piece: what an exporter can write
down.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from igd.inference.runtime import OUTPUTS
from igd.scales.autoencoder import AutoEncoderScale
from igd.training.fitted import FittedState


class Traced(nn.Module):
    """What `FittedState.score` computes, p-values included, for any number of images (b, 3, side,
    side).
    """

    calibration: Tensor

    def __init__(self, fitted: FittedState) -> None:
        super().__init__()
        self.fitted = fitted
        self.register_buffer("calibration", torch.as_tensor(fitted.calibration.scores).float())
        networks = [
            scale.autoencoder for scale in fitted.scales if isinstance(scale, AutoEncoderScale)
        ]
        self.networks = nn.ModuleList(
            [*networks, *([fitted.backbone.view] if fitted.backbone else [])]
        )

    def forward(self, pixels: Tensor, places: Tensor | None = None) -> tuple[Tensor, ...]:
        score, anomaly_map, terms = self.fitted.forward(
            pixels if self.fitted.channels == 3 else grey(pixels), places
        )
        at_least = (self.calibration[None] >= score[:, None]).float().sum(dim=1)
        return score, (1 + at_least) / (len(self.calibration) + 1), anomaly_map, *terms.values()

    @property
    def example(self) -> Tensor:
        """Pixels of the right shape."""
        shape, rng = self.fitted.geometry.shape, torch.Generator().manual_seed(0)
        return torch.randint(0, 256, (2, 3, *shape), dtype=torch.uint8, generator=rng)

    @property
    def example_places(self) -> Tensor | None:
        """Of tiles, where each place has a descriptor of its own."""
        tiling = self.fitted.tiling
        return torch.zeros(2, dtype=torch.long) if tiling and tiling.size else None

    @property
    def outputs(self) -> list[str]:
        """The names of what `forward` gives."""
        pixels = self.example[:, : self.fitted.channels]
        return [*OUTPUTS, *self.fitted.score(pixels, self.example_places).terms]


def grey(pixels: Tensor) -> Tensor:
    """Colour pixels (b, 3, h, w) in grey, to the bit as Pillow converts them."""
    red, green, blue = (pixels[:, channel : channel + 1].int() for channel in range(3))
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).to(torch.uint8)
