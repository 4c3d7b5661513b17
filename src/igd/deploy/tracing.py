"""A detector as one function of 8-bit colour pixels, in one piece: what an exporter can write down."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from igd.detector import IGD
from igd.runtime import OUTPUTS
from igd.scale import Scale


class Traced(nn.Module):
    """What `IGD.look` computes, p-values included, for any number of images (b, 3, side, side)."""

    calibration: Tensor

    def __init__(self, detector: IGD) -> None:
        super().__init__()
        self.detector = detector
        self.register_buffer("calibration", detector.calibration_scores_.float())
        networks = [scale.autoencoder for scale in detector.scales_ if isinstance(scale, Scale)]
        self.networks = nn.ModuleList([*networks, *([detector.backbone_.view] if detector.backbone_ else [])])

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        detector = self.detector
        seen_pixels = pixels if detector.channels_ == 3 else grey(pixels)
        seen = detector.backbone_.traced(seen_pixels) if detector.backbone_ else None
        score, heat, terms = detector.combine([scale.look_at_once(seen_pixels, seen) for scale in detector.scales_])
        at_least = (self.calibration[None] >= score[:, None]).float().sum(dim=1)
        return score, (1 + at_least) / (len(self.calibration) + 1), heat, *terms.values()

    @property
    def example(self) -> Tensor:
        """Pixels of the right shape."""
        side = self.detector.geometry_.side
        chance = torch.Generator().manual_seed(0)
        return torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8, generator=chance)

    @property
    def outputs(self) -> list[str]:
        """The names of what `forward` gives."""
        _, _, terms = self.detector.look(self.example[:, : self.detector.channels_])
        return [*OUTPUTS, *terms]


def grey(pixels: Tensor) -> Tensor:
    """Colour pixels (b, 3, h, w) in grey, to the bit as Pillow converts them."""
    red, green, blue = (pixels[:, channel : channel + 1].int() for channel in range(3))
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).to(torch.uint8)
