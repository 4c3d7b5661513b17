"""What a scale looks at while it learns, and what it says of images afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from igd.combination import Unit, combined
from igd.data.pixels import PatchSamples
from igd.data.store import Pixels
from igd.method.positions import PositionDescriptor, mahalanobis


class SeenSamples(PatchSamples):
    """Patches, and beside each what a frozen backbone sees of it."""

    def __init__(
        self,
        pixels: Pixels,
        side: int,
        stride: int,
        halvings: int,
        features: Tensor | None,
        mirrored: Tensor | None = None,
    ) -> None:
        super().__init__(pixels, side, stride, halvings)
        self.features, self.mirrored = features, mirrored

    def seen(self, indices: Tensor, mirrored: Tensor | None = None) -> Tensor | None:
        if self.features is None or mirrored is None:
            return None if self.features is None else self.features[indices]
        assert self.mirrored is not None
        return torch.where(mirrored[:, None], self.mirrored[indices], self.features[indices])


@dataclass
class Look:
    """What a scale sees in a batch of images."""

    parts: list[tuple[Tensor, float]]  # what an image's score is made of, (b,) each, and the share of each
    terms: dict[str, Tensor]  # l_r and l_h, of patches at the worst one, as far as the objective has them
    map: Tensor  # (b, side, side)


def joined(looks: list[Look]) -> Look:
    """Looks at one batch after another, as one look at all."""
    first = looks[0]
    parts = [(torch.cat([look.parts[n][0] for look in looks]), share) for n, (_, share) in enumerate(first.parts)]
    terms = {name: torch.cat([look.terms[name] for look in looks]) for name in first.terms}
    return Look(parts, terms, torch.cat([look.map for look in looks]))


def parts_of(looks: list[Look]) -> list[tuple[Tensor, float]]:
    """What a score is made of, and the share of each: scales count alike."""
    return [(value, share / len(looks)) for look in looks for value, share in look.parts]


def heat_of(looks: list[Look], units: list[Unit] | None) -> Tensor:
    """One map of what all scales see: (b, side, side)."""
    return combined([(look.map, 1.0) for look in looks], units)


def excess(maps: Tensor, usual: PositionDescriptor) -> Tensor:
    """How far each pixel of maps (b, h, w) lies above what is usual at its place, in spreads."""
    above = torch.maximum(maps[:, None], usual.mean)
    return mahalanobis(above, usual).sqrt()
