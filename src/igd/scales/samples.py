"""The training samples of an auto-encoder: patches, and beside each what a frozen backbone makes of
it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from igd.data.patches import PatchSamples
from igd.data.store import Pixels
from igd.method.training_state import Batch


class FeatureSamples(PatchSamples):
    """Patches whose encoder input are the patches themselves or, where there are any, features of
    them.
    """

    def __init__(
        self,
        pixels: Pixels,
        side: int,
        stride: int,
        downsampling: int,
        features: Tensor | None,  # (n, f)
        mirrored: Tensor | None = None,  # features of the mirrored patches
    ) -> None:
        super().__init__(pixels, side, stride, downsampling)
        self.features, self.mirrored = features, mirrored

    def encoder_input(self, indices: Tensor) -> Tensor:
        return self[indices] if self.features is None else self.features[indices]

    def batch(self, indices: Tensor, mirrored: Tensor | None = None) -> Batch:
        image = self[indices]
        if mirrored is not None:
            image = torch.where(mirrored.view(-1, 1, 1, 1), image.flip(-1), image)
        if self.features is None:
            return Batch(image, image)
        if mirrored is None:
            return Batch(image, self.features[indices])
        assert self.mirrored is not None
        return Batch(
            image, torch.where(mirrored[:, None], self.mirrored[indices], self.features[indices])
        )
