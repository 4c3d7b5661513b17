"""The embedding: a Gaussian of the one vector that a frozen backbone makes of a whole image.

The paper's Gaussian anomaly classifier with nothing to train: mean and covariance of ImageNet
features, as Rippel et al. (2021) measure normality by them. Where the backbone learnt to tell how
images are turned, how well it tells that counts too. It has no map.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.scales.base import FeatureScale, ScaleOutput, logarithms
from igd.scales.patch_features import SMALLEST
from igd.scales.scale_settings import EmbeddingSettings
from igd.scales.shrunk_gaussian import ShrunkGaussian
from igd.scales.turns import lacking, turn_direction


class EmbeddingScale(FeatureScale):
    """The Gaussian of an image's vector, and the margin between its turns where that counts."""

    settings: EmbeddingSettings
    turns: Tensor | None = None  # (d,), the direction in which they are told apart

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.settings, self.gaussian = settings, ShrunkGaussian(settings.directions)

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        vector = _vector(features).float()
        self.gaussian.learn(vector)
        if self.settings.turns:
            self.turns = turn_direction(vector)

    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:  # noqa: ARG002
        """The direction of turns stays: the encoder that tells them has not learnt more."""
        self.gaussian = copy.copy(self.gaussian)  # which copies of this scale share
        self.gaussian.extend(_vector(features).float(), count)

    def distances(self, features: Features) -> list[Tensor]:
        """Mahalanobis's squared distance, a dimension; what an image lacks of the margin between
        turns that normal ones have.
        """
        vector = _vector(features)
        distance = self.gaussian.distance(vector)
        if self.turns is None:
            return [distance]
        return [distance, lacking(vector @ self.turns, self.gaussian.mean @ self.turns)]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:  # noqa: ARG002
        terms = {"distance": (distances[0] + SMALLEST).log()}
        if self.turns is not None:
            terms["turns"] = distances[1]
        part = terms["distance"] + terms.get("turns", 0)
        return ScaleOutput([part], [1.0], terms, [], [], logarithms([part]))

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        assert features is not None
        return self.gaussian.whitened(_vector(features))

    def tensors(self) -> dict[str, Tensor]:
        turns = {} if self.turns is None else {"turns": self.turns}
        return {**self.gaussian.tensors(), **turns}

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.gaussian.restore(tensors)
        if self.settings.turns:
            self.turns = tensors["turns"]
            if self.turns.shape != self.gaussian.mean.shape:
                raise ValueError("a direction of turns of the wrong shape")


def _vector(features: Features) -> Tensor:
    assert features.vector is not None
    return features.vector
