"""How much detail an image has, and nothing else: a floor for whatever is trained on small images.

igd benchmark run cifar10 --methods benchmarks/detail.py:Detail

Three numbers of an image, contrast and the mean difference of neighbours along both axes, and a
Gaussian of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from igd.benchmark.methods import Method, Scored
from igd.data.sample import Sample
from igd.scales.encoder_statistics import detail


def mahalanobis(vectors: Tensor, normal: Tensor) -> Tensor:
    """Squared distance of vectors (n, d) from normal ones: (n,)."""
    centred = (vectors - normal.mean(dim=0)).double()
    whole: Tensor = torch.linalg.solve(torch.cov(normal.double().T), centred.T)
    return (centred * whole.T).sum(dim=1)


class Detail(Method):
    """A Gaussian of the detail of images."""

    def fit(self, images: Sequence[Sample]) -> None:
        self.normal = _details(images)

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        return (Scored(float(value)) for value in mahalanobis(_details(images), self.normal))


def _details(images: Sequence[Sample]) -> Tensor:
    """One row an image, whose sizes may differ."""
    rows = []
    for sample in images:
        image = torch.from_numpy(np.array(sample.read(), dtype=np.float32) / 255)
        rows.append(detail(image.reshape(*image.shape[:2], -1).permute(2, 0, 1)[None]))
    return torch.cat(rows)
