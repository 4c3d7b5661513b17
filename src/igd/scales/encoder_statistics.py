"""What an encoder that learnt from scratch sees of an image at every depth, and what the image
shows without one: a Gaussian of each.

The paper's l_h is a Gaussian of the last vector alone, which the decoder needs for its own purpose.
What tells one kind of image from another lies mostly in the blocks before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from igd.files.checkpoint_file import under
from igd.scales.patch_features import SMALLEST
from igd.scales.shrunk_gaussian import ShrunkGaussian

DIRECTIONS = 1024  # at most, that a Gaussian keeps
LEAST_DETAIL = 1e-4  # of each number, before its logarithm
DETAILS = 3
# Deviations of the two logarithms, at least: those of normal images of three data sets lie above,
# about 0.35 and 0.85.
LEAST = {"statistics": 0.2, "detail": 0.5}


def channel_statistics(maps: Sequence[Tensor]) -> Tensor:
    """Mean and deviation of every channel of every map: (b, c, h, w) each -> (b, 2 sum of c)."""
    found = []
    for each in maps:
        mean = each.mean(dim=(2, 3))
        found += [mean, (each - mean[..., None, None]).square().mean(dim=(2, 3)).sqrt()]
    return torch.cat(found, dim=1)


def detail(image: Tensor) -> Tensor:
    """Contrast, and the mean difference of neighbours along both axes, as logarithms: (b, c, h, w)
    -> (b, 3).
    """
    flat = image.flatten(1)
    shown = [
        (flat - flat.mean(dim=1, keepdim=True)).square().mean(dim=1).sqrt(),
        (image[:, :, 1:] - image[:, :, :-1]).abs().mean(dim=(1, 2, 3)),
        (image[..., 1:] - image[..., :-1]).abs().mean(dim=(1, 2, 3)),
    ]
    return torch.stack(shown, dim=1).clamp(min=LEAST_DETAIL).log()


class EncoderStatistics:
    """Gaussians of the statistics of all channels, and of the detail, of normal images."""

    def __init__(self) -> None:
        self.channels, self.detail = ShrunkGaussian(DIRECTIONS), ShrunkGaussian(DETAILS)

    def learn(self, normal: Iterable[tuple[Tensor, Sequence[Tensor]]]) -> None:
        """From normal images and the maps that the encoder makes of them, batch after batch."""
        rows = [(channel_statistics(maps), detail(image)) for image, maps in normal]
        of_channels, of_images = (torch.cat(each) for each in zip(*rows, strict=True))
        self.channels.learn(of_channels)
        self.detail.learn(of_images)

    def distances(self, image: Tensor, maps: Sequence[Tensor]) -> dict[str, Tensor]:
        """How far images are from normal ones, as logarithms: (b,) each."""
        squared = {
            "statistics": self.channels.distance(channel_statistics(maps)),
            "detail": self.detail.distance(detail(image)),
        }
        return {name: (each + SMALLEST).log() for name, each in squared.items()}

    def tensors(self) -> dict[str, Tensor]:
        both = {"channels": self.channels, "detail": self.detail}
        return {
            f"{name}.{key}": value
            for name, gaussian in both.items()
            for key, value in gaussian.tensors().items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The reverse of `tensors`."""
        self.channels.restore(under("channels.", tensors))
        self.detail.restore(under("detail.", tensors))
