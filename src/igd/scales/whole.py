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
from igd.scales.base import FeatureScale, ScaleOutput, logarithms
from igd.scales.patch_features import SMALLEST
from igd.scales.region_mask import counted
from igd.scales.scale_settings import WholeSettings

AT_ONCE = 64  # images whose features are held as floats while it learns


class WholeScale(FeatureScale):
    """Mean and whitening of one vector an image."""

    settings: WholeSettings
    mean: Tensor  # (d,)
    whitener: Tensor  # (d, d)

    def __init__(self, settings: WholeSettings) -> None:
        self.settings = settings

    def learn(self, features: Features, rng: torch.Generator) -> None:  # noqa: ARG002
        self._learn_vectors(self.statistics(features))

    def statistics(self, features: Features) -> Tensor:
        """The vector of each image: (n, d)."""
        return torch.cat([self.vectors(some) for some in features.batches(AT_ONCE)]).double()

    def learn_without(
        self,
        features: Features,
        held_out: Tensor,
        statistics: Tensor,
        rng: torch.Generator,  # noqa: ARG002
    ) -> None:
        self._learn_vectors(statistics[features.others(held_out)])

    def _learn_vectors(self, vectors: Tensor) -> None:
        mean = vectors.mean(dim=0)
        self._describe(mean, (vectors - mean).T @ (vectors - mean), len(vectors))

    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:  # noqa: ARG002
        """Exact, but for the rounding of the numbers that are kept."""
        inverse = torch.linalg.inv(self.whitener.double())
        shrunk = inverse @ inverse.T
        # Shrinking a correlation leaves its diagonal alone, which is the variance.
        variance = shrunk.diagonal().diag()
        shrinkage = self.settings.shrinkage
        former = (shrunk - shrinkage * variance) / (1 - shrinkage) * max(count - 1, 1)
        vectors, total = self.statistics(features), count + features.images
        mean = vectors.mean(dim=0)
        shift = mean - self.mean.double()
        scatter = former + (vectors - mean).T @ (vectors - mean)
        scatter += count * len(vectors) / total * torch.outer(shift, shift)
        self._describe(self.mean.double() + len(vectors) / total * shift, scatter, total)

    def _describe(self, mean: Tensor, scatter: Tensor, count: int) -> None:
        """Mean and whitening of the vectors of so many images, by their mean and scatter."""
        covariance = scatter / max(count - 1, 1)
        deviation = covariance.diagonal().clamp(min=0).sqrt()
        spread = deviation + 1e-6 * deviation.mean() + 1e-8
        correlation = covariance / torch.outer(spread, spread)
        size, shrinkage = len(correlation), self.settings.shrinkage
        identity = torch.eye(size, dtype=torch.float64)
        factor = torch.linalg.cholesky((1 - shrinkage) * correlation + shrinkage * identity)
        inverse = torch.linalg.solve_triangular(factor, identity, upper=False)
        self.mean, self.whitener = mean.float(), (inverse / spread).float().contiguous()

    def vectors(self, features: Features) -> Tensor:
        """Mean and deviation of each block's features over the positions that count, of unit length
        each.
        """
        maps = [features.maps[n] for n in self.settings.maps]
        maps = [counted(each, self.region) for each in maps]
        means = [each.mean(dim=2) for each in maps]
        deviations = [_deviation(each, mean) for each, mean in zip(maps, means, strict=True)]
        return torch.cat([F.normalize(each, dim=1) for each in (*means, *deviations)], dim=1)

    def distances(self, features: Features) -> list[Tensor]:
        white = (self.vectors(features) - self.mean) @ self.whitener.T
        return [white.square().mean(dim=1)]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:  # noqa: ARG002
        part = (distances[0] + SMALLEST).log()
        return ScaleOutput([part], [1.0], {"distance": part}, [], [], logarithms([part]))

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        assert features is not None
        return (self.vectors(features) - self.mean) @ self.whitener.T

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "whitener": self.whitener}

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.mean, self.whitener = tensors["mean"], tensors["whitener"]
        if self.whitener.shape != 2 * self.mean.shape or self.mean.dim() != 1:
            raise ValueError("a descriptor of the whole image of the wrong shape")


def _deviation(values: Tensor, mean: Tensor) -> Tensor:
    """`Tensor.std` over the positions of (b, c, n) with a known mean (b, c), in a tenth of the
    time. One position alone deviates by nothing.
    """
    squares = (values - mean[:, :, None]).square().sum(dim=2)
    return (squares / max(1, values.shape[2] - 1)).sqrt()
