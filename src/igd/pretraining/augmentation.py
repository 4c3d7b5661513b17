"""Views of images to learn from, drawn for a whole batch of tensors at once.

A handful of lines each, on tensors: a library for them would outweigh the rest of the installation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

GREY = (0.299, 0.587, 0.114)  # how much of each colour's light the eye sees


def random_view(image: Tensor, rng: torch.Generator) -> Tensor:
    """SimCLR's augmentations of images (b, 3, h, w) in [0, 1]: crop and resize, mirror, colour,
    grey.
    """
    return random_grey(random_colour(random_crop(image, rng), rng), rng)


def random_crop(image: Tensor, rng: torch.Generator, smallest: float = 0.2) -> Tensor:
    """A part of each image of random area, shape and place, mirrored half of the time, at the full
    size.
    """
    count = len(image)
    area = _uniform(count, smallest, 1.0, rng)
    aspect = torch.exp(_uniform(count, -0.2877, 0.2877, rng))  # from 3/4 to 4/3
    height, width = (area / aspect).sqrt().clamp(max=1), (area * aspect).sqrt().clamp(max=1)
    row, column = (
        (2 * torch.rand(count, generator=rng) - 1) * (1 - length) for length in (height, width)
    )
    mirror = torch.where(torch.rand(count, generator=rng) < 0.5, -1.0, 1.0)
    zero = torch.zeros(count)
    place = torch.stack(
        [torch.stack([width * mirror, zero, column], 1), torch.stack([zero, height, row], 1)], 1
    )
    grid = F.affine_grid(place, list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, padding_mode="reflection", align_corners=False)


def random_colour(
    image: Tensor, rng: torch.Generator, strength: float = 0.4, share: float = 0.8
) -> Tensor:
    """Brightness, contrast and saturation, each by a factor of up to 1 +- `strength`, of a `share`
    of the images.
    """
    count = len(image)
    changed = (torch.rand(count, generator=rng) < share).view(-1, 1, 1, 1)
    brightness, contrast, saturation = (
        _uniform(count, 1 - strength, 1 + strength, rng).view(-1, 1, 1, 1) for _ in range(3)
    )
    bright = image * brightness
    grey = _grey(bright)
    contrasted = torch.lerp(grey.mean(dim=(2, 3), keepdim=True), bright, contrast)
    coloured = torch.lerp(_grey(contrasted), contrasted, saturation).clamp(0, 1)
    return torch.where(changed, coloured, image)


def random_grey(image: Tensor, rng: torch.Generator, share: float = 0.2) -> Tensor:
    """A `share` of the images without their colour."""
    changed = (torch.rand(len(image), generator=rng) < share).view(-1, 1, 1, 1)
    return torch.where(changed, _grey(image).expand_as(image), image)


def _grey(image: Tensor) -> Tensor:
    return (image * torch.tensor(GREY).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)


def _uniform(count: int, low: float, high: float, rng: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(count, generator=rng)
