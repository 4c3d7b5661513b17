"""The one interface of all scales, and what a scale says of a batch of images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.scales.region_mask import RegionMask
from igd.scales.scale_settings import ScaleSettings

LEAST_LOG_MAD = 0.02  # deviation of logarithms of distances, at least


@dataclass
class ScaleOutput:
    """Score and map of a batch, as one scale has them."""

    parts: list[Tensor]  # what its score is made of, (b,) each
    weights: list[float]  # of the parts
    # What people may want to know beside it, (b,) each: l_r, l_h and others, of patches at the
    # worst one; whether they count or not.
    terms: dict[str, Tensor]
    maps: list[Tensor]  # (b, rows, columns) each
    map_weights: list[float]
    # By how much the logarithms among the parts deviate at least: a few images may agree by
    # chance, and a share of the median, which bounds other parts, says nothing of a logarithm.
    least: dict[int, float] = field(default_factory=dict)


def logarithms(parts: list[Tensor]) -> dict[int, float]:
    """`least` of parts that all are logarithms of distances."""
    return dict.fromkeys(range(len(parts)), LEAST_LOG_MAD)


class Scale(ABC):
    """A model of normal images that scores others. `features` is what a frozen backbone makes of
    them, if there is one.
    """

    settings: ScaleSettings
    history: Tensor | None = None  # of its training, where it has one
    region: RegionMask | None = None  # of an image that counts; None: all of it

    @abstractmethod
    def forward(self, pixels: Tensor, features: Features | None) -> ScaleOutput:
        """Score and map of 8-bit images (b, c, rows, columns), in one piece: what export traces."""

    @torch.no_grad()
    def score(self, pixels: Tensor, features: Features | None) -> ScaleOutput:
        """`forward`, with no more images at once than memory should hold."""
        return self.forward(pixels, features)

    @abstractmethod
    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:
        """Where images lie in the space that the scale measures distances in: (b, Z)."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learnt, for the model file."""

    @abstractmethod
    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:
        """The reverse of `tensors`; what does not fit raises an error that names the file."""


class FeatureScale(Scale):
    """A scale that learns from a frozen backbone's features of all images at once.

    It is fast enough to be fitted several times, so that every training image can be scored by a
    model that did not learn from it.
    """

    def forward(self, pixels: Tensor, features: Features | None) -> ScaleOutput:
        assert features is not None
        return self.output(self.distances(features), (pixels.shape[-2], pixels.shape[-1]))

    @abstractmethod
    def learn(self, features: Features, rng: torch.Generator) -> None:
        """Learn from the features of all normal images."""

    def statistics(self, features: Features) -> Any:  # noqa: ARG002
        """Of all images, what every fold can learn from: sums that some can be taken out of again,
        or a vector of each image. None where there is nothing.
        """
        return None

    def learn_without(
        self,
        features: Features,
        held_out: Tensor,
        statistics: Any,  # noqa: ARG002
        rng: torch.Generator,
    ) -> None:
        """Learn from all images but those held out, by their numbers; `statistics` are of all."""
        self.learn(features.without(held_out), rng)

    @abstractmethod
    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:
        """Learn from more images, beside the `count` that were learnt from and are gone."""

    @abstractmethod
    def distances(self, features: Features) -> list[Tensor]:
        """How far images are from normal ones, in each part: at each position (b, rows, columns),
        or as a whole (b,).
        """

    @abstractmethod
    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:
        """Score and map, of this size, made of distances."""


def concatenated(outputs: list[ScaleOutput]) -> ScaleOutput:
    """The outputs of one batch after another, as the output of all."""
    first = outputs[0]
    parts = [torch.cat([each.parts[n] for each in outputs]) for n in range(len(first.parts))]
    maps = [torch.cat([each.maps[n] for each in outputs]) for n in range(len(first.maps))]
    terms = {name: torch.cat([each.terms[name] for each in outputs]) for name in first.terms}
    return ScaleOutput(parts, first.weights, terms, maps, first.map_weights, first.least)
