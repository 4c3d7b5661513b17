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
    """Mean and covariance: its largest directions, one variance for all others, and how much it is
    shrunk towards a multiple of the identity.
    """

    settings: EmbeddingSettings
    mean: Tensor  # (d,)
    directions: Tensor  # (k, d), of unit length
    variance: Tensor  # (k + 1,), along each of them and along any other
    shrinkage: Tensor  # scalar

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.settings = settings

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        assert features.vector is not None
        vectors = features.vector.float()
        self.mean, self.shrinkage = vectors.mean(dim=0), torch.tensor(shrinkage_of(vectors))
        self._describe(vectors - self.mean, len(vectors))

    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:  # noqa: ARG002
        """Exact as far as the directions that are kept go; the shrinkage stays as it was."""
        assert features.vector is not None
        vectors = features.vector.float()
        total, shift = count + len(vectors), vectors.mean(dim=0) - self.mean
        former = self.directions * (count * self.variance[:-1, None]).sqrt()
        between = shift * (count * len(vectors) / total) ** 0.5
        own, rest = vectors - vectors.mean(dim=0), count * self.variance[-1] * self._others
        self.mean = self.mean + len(vectors) / total * shift
        self._describe(torch.cat([former, own, between[None]]), total, rest)

    def _describe(self, centred: Tensor, count: int, rest: Tensor | float = 0.0) -> None:
        """The covariance of `count` images, from rows whose scatter is theirs and from what they
        vary in directions that were not kept.
        """
        most = min(self.settings.directions, len(centred) - 1, centred.shape[1])
        variance, directions = principal(centred, most)
        variance = variance * len(centred) / count
        self.directions = directions.T.half().float().contiguous()  # as the file holds them
        left = (centred.square().sum() + rest) / count - variance.sum()
        self.variance = torch.cat([variance, (left / max(self._others, 1)).clamp(min=0)[None]])

    @property
    def _others(self) -> int:
        """How many directions there are beside those that are kept."""
        return self.directions.shape[1] - len(self.directions)

    @property
    def _shrunk(self) -> Tensor:
        """The variances that distances are measured by."""
        kept, other = self.variance[:-1], self.variance[-1]
        average = (kept.sum() + self._others * other) / len(self.mean)
        shrunk = (1 - self.shrinkage) * self.variance + self.shrinkage * average
        return shrunk.clamp(min=SMALLEST**2)

    def distances(self, features: Features) -> list[Tensor]:
        """Mahalanobis's squared distance, a dimension."""
        assert features.vector is not None
        centred, variance = features.vector - self.mean, self._shrunk
        along = (centred @ self.directions.T).square()
        beside = (centred.square().sum(dim=1) - along.sum(dim=1)).clamp(min=0)
        squared = along @ variance[:-1].reciprocal() + beside / variance[-1]
        return [squared / len(self.mean)]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:  # noqa: ARG002
        part = (distances[0] + SMALLEST).log()
        return ScaleOutput([part], [1.0], {"distance": part}, [], [])

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        assert features is not None
        assert features.vector is not None
        return (features.vector - self.mean) @ self.directions.T * self._shrunk[:-1].rsqrt()

    def tensors(self) -> dict[str, Tensor]:
        return {
            "mean": self.mean,
            "directions": self.directions.half(),
            "variance": self.variance,
            "shrinkage": self.shrinkage,
        }

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.mean, self.variance = tensors["mean"], tensors["variance"]
        self.directions, self.shrinkage = tensors["directions"].float(), tensors["shrinkage"]
        shape = (len(self.variance) - 1, len(self.mean))
        if self.mean.dim() != 1 or self.directions.shape != shape or self.shrinkage.dim():
            raise ValueError("a descriptor of embeddings of the wrong shape")
