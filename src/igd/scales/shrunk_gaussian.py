"""A Gaussian of long vectors: the directions of largest variance, one variance for all others, and
a covariance that is shrunk towards a multiple of the identity.
"""

from __future__ import annotations

import torch
from torch import Tensor

from igd.scales.patch_features import SMALLEST
from igd.scales.whitening import principal, shrinkage_of


class ShrunkGaussian:
    """Mean and covariance of normal vectors, and Mahalanobis's distance of others from them."""

    mean: Tensor  # (d,)
    directions: Tensor  # (k, d), of unit length
    variance: Tensor  # (k + 1,), along each of them and along any other
    shrinkage: Tensor  # scalar

    def __init__(self, most: int) -> None:
        self.most = most  # directions that are kept

    def learn(self, vectors: Tensor) -> None:
        """From all normal vectors (n, d)."""
        self.mean, self.shrinkage = vectors.mean(dim=0), torch.tensor(shrinkage_of(vectors))
        self._describe(vectors - self.mean, len(vectors))

    def extend(self, vectors: Tensor, count: int) -> None:
        """From more vectors (n, d), beside the `count` that were learnt from and are gone. Exact as
        far as the directions that are kept go; the shrinkage stays as it was.
        """
        total, shift = count + len(vectors), vectors.mean(dim=0) - self.mean
        former = self.directions * (count * self.variance[:-1, None]).sqrt()
        between = shift * (count * len(vectors) / total) ** 0.5
        own, rest = vectors - vectors.mean(dim=0), count * self.variance[-1] * self._others
        self.mean = self.mean + len(vectors) / total * shift
        self._describe(torch.cat([former, own, between[None]]), total, rest)

    def _describe(self, centred: Tensor, count: int, rest: Tensor | float = 0.0) -> None:
        """The covariance of `count` vectors, from rows whose scatter is theirs and from what they
        vary in directions that were not kept.
        """
        variance, directions = principal(
            centred, min(self.most, len(centred) - 1, centred.shape[1])
        )
        variance = variance * len(centred) / count
        self.directions = directions.T.half().to(centred).contiguous()  # as the file holds them
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

    def distance(self, vectors: Tensor) -> Tensor:
        """Mahalanobis's squared distance, a dimension: (b, d) -> (b,)."""
        centred, variance = vectors - self.mean, self._shrunk
        along = (centred @ self.directions.T).square()
        beside = (centred.square().sum(dim=1) - along.sum(dim=1)).clamp(min=0)
        squared = along @ variance[:-1].reciprocal() + beside / variance[-1]
        return squared / len(self.mean)

    def whitened(self, vectors: Tensor) -> Tensor:
        """Vectors along the directions that are kept, white: (b, d) -> (b, k)."""
        return (vectors - self.mean) @ self.directions.T * self._shrunk[:-1].rsqrt()

    def tensors(self) -> dict[str, Tensor]:
        return {
            "mean": self.mean,
            "directions": self.directions.half(),
            "variance": self.variance,
            "shrinkage": self.shrinkage,
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The reverse of `tensors`."""
        self.mean, self.variance = tensors["mean"], tensors["variance"]
        self.directions, self.shrinkage = tensors["directions"].float(), tensors["shrinkage"]
        shape = (len(self.variance) - 1, len(self.mean))
        vectors = self.mean.dim() == self.variance.dim() == 1
        if not vectors or self.directions.shape != shape or self.shrinkage.dim():
            raise ValueError("a Gaussian of vectors of the wrong shape")
