"""The embedding: a Gaussian of the one vector that a frozen backbone makes of a whole image.

The paper's Gaussian anomaly classifier with nothing to train: mean and covariance of ImageNet
features, as Rippel et al. (2021) measure normality by them. It has no map.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.scales.base import FeatureScale, ScaleOutput, logarithms
from igd.scales.patch_features import SMALLEST
from igd.scales.recipes import EmbeddingSettings
from igd.scales.shrunk_gaussian import ShrunkGaussian


class EmbeddingScale(FeatureScale):
    """The Gaussian of an image's vector."""

    settings: EmbeddingSettings

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.settings, self.gaussian = settings, ShrunkGaussian(settings.directions)

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        self.gaussian.learn(_vector(features).float())

    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:  # noqa: ARG002
        self.gaussian.extend(_vector(features).float(), count)

    def distances(self, features: Features) -> list[Tensor]:
        """Mahalanobis's squared distance, a dimension."""
        return [self.gaussian.distance(_vector(features))]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:  # noqa: ARG002
        part = (distances[0] + SMALLEST).log()
        return ScaleOutput([part], [1.0], {"distance": part}, [], [], logarithms([part]))

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        assert features is not None
        return self.gaussian.whitened(_vector(features))

    def tensors(self) -> dict[str, Tensor]:
        return self.gaussian.tensors()

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.gaussian.restore(tensors)


def _vector(features: Features) -> Tensor:
    assert features.vector is not None
    return features.vector
