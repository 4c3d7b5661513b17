"""The embedding: a Gaussian of the one vector that a frozen backbone makes of a whole image.

The paper's Gaussian anomaly classifier with nothing to train: mean and covariance of ImageNet
features, as Rippel et al. (2021) measure normality by them. It has no map.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.scales.base import FeatureScale, ScaleOutput
from igd.scales.patch_features import SMALLEST
from igd.scales.recipes import EmbeddingSettings
from igd.scales.whitening import principal, shrinkage_of


class EmbeddingScale(FeatureScale):
    """Mean and shrunk covariance: its largest directions, and one variance for all others."""

    settings: EmbeddingSettings
    mean: Tensor  # (d,)
    directions: Tensor  # (k, d), of unit length
    variance: Tensor  # (k + 1,), along each of them and along any other

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.settings = settings

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        assert features.vector is not None
        vectors = features.vector.float()
        self.mean = vectors.mean(dim=0)
        centred = vectors - self.mean
        count = min(self.settings.directions, len(vectors) - 1, vectors.shape[1])
        variance, directions = principal(centred, count)
        shrinkage, average = shrinkage_of(vectors), centred.square().mean()
        kept = (1 - shrinkage) * variance + shrinkage * average
        # What the directions leave of the variance is spread evenly over all others.
        left = (centred.square().sum(dim=1).mean() - variance.sum()).clamp(min=0)
        rest = (1 - shrinkage) * left / max(vectors.shape[1] - count, 1) + shrinkage * average
        self.directions = directions.T.half().float().contiguous()  # as the file holds them
        self.variance = torch.cat([kept, rest[None]]).clamp(min=SMALLEST * average + 1e-12)

    def distances(self, features: Features) -> list[Tensor]:
        """Mahalanobis's squared distance, a dimension."""
        assert features.vector is not None
        centred = features.vector - self.mean
        along = (centred @ self.directions.T).square()
        beside = (centred.square().sum(dim=1) - along.sum(dim=1)).clamp(min=0)
        squared = along @ self.variance[:-1].reciprocal() + beside / self.variance[-1]
        return [squared / len(self.mean)]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:  # noqa: ARG002
        part = (distances[0] + SMALLEST).log()
        return ScaleOutput([part], [1.0], {"distance": part}, [], [])

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        assert features is not None
        assert features.vector is not None
        return (features.vector - self.mean) @ self.directions.T * self.variance[:-1].rsqrt()

    def tensors(self) -> dict[str, Tensor]:
        return {
            "mean": self.mean,
            "directions": self.directions.half(),
            "variance": self.variance,
        }

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.mean, self.variance = tensors["mean"], tensors["variance"]
        self.directions = tensors["directions"].float()
        count = len(self.variance) - 1
        if self.mean.dim() != 1 or self.directions.shape != (count, len(self.mean)):
            raise ValueError("a descriptor of embeddings of the wrong shape")
