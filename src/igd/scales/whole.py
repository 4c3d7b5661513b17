"""The whole: a Gaussian of what an image's feature maps are on average, and of how much they vary
in it.

The paper's global descriptor on frozen features: light, kind and number of things, wherever they
are. It has no map.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from igd.backbones.features import Features
from igd.scales.base import FeatureScale, ScaleOutput
from igd.scales.patch_features import SMALLEST
from igd.scales.recipes import WholeSettings

AT_ONCE = 64  # images whose features are held as floats while it learns


class WholeScale(FeatureScale):
    """Mean and whitening of one vector an image."""

    settings: WholeSettings
    mean: Tensor  # (d,)
    whitener: Tensor  # (d, d)

    def __init__(self, settings: WholeSettings) -> None:
        self.settings = settings

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        vectors = torch.cat([self.vectors(some) for some in features.batches(AT_ONCE)]).double()
        self.mean = vectors.mean(dim=0).float()
        spread = vectors.std(dim=0) + 1e-6 * vectors.std() + 1e-8
        standard = (vectors - vectors.mean(dim=0)) / spread
        covariance = standard.T @ standard / max(len(vectors) - 1, 1)
        size, shrinkage = len(covariance), self.settings.shrinkage
        identity = torch.eye(size, dtype=torch.float64)
        factor = torch.linalg.cholesky((1 - shrinkage) * covariance + shrinkage * identity)
        inverse = torch.linalg.solve_triangular(factor, identity, upper=False)
        self.whitener = (inverse / spread).float()

    def vectors(self, features: Features) -> Tensor:
        """Mean and deviation of each block's features over its positions, of unit length each."""
        maps = [features.maps[n] for n in self.settings.maps]
        means = [each.mean(dim=(2, 3)) for each in maps]
        deviations = [each.flatten(2).std(dim=2) for each in maps]
        return torch.cat([F.normalize(each, dim=1) for each in (*means, *deviations)], dim=1)

    def distances(self, features: Features) -> list[Tensor]:
        white = (self.vectors(features) - self.mean) @ self.whitener.T
        return [white.square().mean(dim=1)]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:  # noqa: ARG002
        part = (distances[0] + SMALLEST).log()
        return ScaleOutput([part], [1.0], {"distance": part}, [], [])

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        assert features is not None
        return (self.vectors(features) - self.mean) @ self.whitener.T

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "whitener": self.whitener}

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.mean, self.whitener = tensors["mean"], tensors["whitener"]
        if self.whitener.shape != 2 * self.mean.shape or self.mean.dim() != 1:
            raise ValueError("a descriptor of the whole image of the wrong shape")
