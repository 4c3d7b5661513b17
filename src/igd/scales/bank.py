"""What: a bank of normal patches regardless of their position, and the distance to the nearest.

PatchCore (Roth et al., 2022) credited: a coreset of patches of frozen features. Here patches are
white before they are compared, so that the distance is Mahalanobis's, as in MH-PatchCore.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.scales.base import FeatureScale, ScaleOutput, logarithms
from igd.scales.patch_features import drawn_patches, log_map, log_peak, unit_features
from igd.scales.region_mask import counted
from igd.scales.scale_settings import BankSettings

WHITENED_ON = 40_000  # patches
CHOSEN_FROM = 12_000  # patches that the bank is chosen from
PROJECTED = 48  # dimensions in which patches are compared while the bank is chosen


class BankScale(FeatureScale):
    """A mean, a whitening and some white patches."""

    settings: BankSettings
    mean: Tensor  # (d,)
    whitener: Tensor  # (d, d)
    bank: Tensor  # (patches, d), white

    def __init__(self, settings: BankSettings) -> None:
        self.settings = settings

    def learn(self, features: Features, rng: torch.Generator) -> None:
        self._learn_from(features, torch.arange(features.images), rng)

    def learn_without(
        self,
        features: Features,
        held_out: Tensor,
        statistics: None,  # noqa: ARG002
        rng: torch.Generator,
    ) -> None:
        """Draws from the others where they are: a copy of them would be most of the memory."""
        self._learn_from(features, features.others(held_out), rng)

    def _learn_from(self, features: Features, images: Tensor, rng: torch.Generator) -> None:
        """Learn from some of the images, by their numbers."""
        maps = [features.maps[n] for n in self.settings.maps]
        for_whitening = drawn_patches(maps, WHITENED_ON, rng, self.region, images)
        self.mean = for_whitening.mean(dim=0)
        self.whitener = whitening(covariance(for_whitening - self.mean), self.settings.ridge)
        self._choose(drawn_patches(maps, CHOSEN_FROM, rng, self.region, images), rng)

    def extend(self, features: Features, count: int, rng: torch.Generator) -> None:
        """The whitening is that of all patches together. The bank is chosen from the former one and
        new patches: a coreset of a coreset, which covers what both covered.
        """
        maps = [features.maps[n] for n in self.settings.maps]
        share = features.images / (count + features.images)
        coloured = torch.linalg.inv(self.whitener.double())  # white patches as they were
        former = self.bank @ coloured.float() + self.mean
        patches = drawn_patches(maps, WHITENED_ON, rng, self.region)
        mean = patches.mean(dim=0)
        shift = (mean - self.mean).double()
        together = (
            (1 - share) * without_ridge(coloured.T @ coloured, self.settings.ridge)
            + share * covariance(patches - mean)
            + share * (1 - share) * torch.outer(shift, shift)
        )
        self.mean = (self.mean.double() + share * shift).float()
        self.whitener = whitening(together, self.settings.ridge)
        self._choose(torch.cat([former, drawn_patches(maps, CHOSEN_FROM, rng, self.region)]), rng)

    def _choose(self, candidates: Tensor, rng: torch.Generator) -> None:
        white = (candidates - self.mean) @ self.whitener
        self.bank = white[coreset(white, self.settings.patches, rng)].half().float()

    def distances(self, features: Features) -> list[Tensor]:
        patches = unit_features([features.maps[n] for n in self.settings.maps])
        count, size, rows, columns = patches.shape
        white = (patches.permute(0, 2, 3, 1).reshape(-1, size) - self.mean) @ self.whitener
        # Without the patch's own length, which is the same to all of the bank: one pass less.
        relative = torch.addmm(self.bank.square().sum(dim=1), white, self.bank.T, alpha=-2)
        if self.settings.nearest == 1:
            nearest = relative.amin(dim=1)
        else:
            nearest = relative.topk(self.settings.nearest, dim=1, largest=False).values.mean(dim=1)
        nearest = nearest + white.square().sum(dim=1)
        return [(nearest.clamp(min=0) / size).view(count, rows, columns)]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:
        (distance,) = distances
        peak = log_peak(distance, self.settings.top, self.region)
        anomaly_map = log_map(distance, size, self.settings.smoothing, self.region)
        weight = self.settings.map_weight
        return ScaleOutput(
            [peak], [1.0], {"nearest": peak}, [anomaly_map], [weight], logarithms([peak])
        )

    def latents(self, pixels: Tensor, features: Features | None) -> Tensor:  # noqa: ARG002
        """The white patch of each image that is furthest from the bank: (b, d)."""
        assert features is not None
        patches = unit_features([features.maps[n] for n in self.settings.maps])
        (distance,) = self.distances(features)
        furthest = counted(distance, self.region).argmax(dim=1)
        chosen = counted(patches, self.region)[torch.arange(len(patches)), :, furthest]
        white: Tensor = (chosen - self.mean) @ self.whitener
        return white

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "whitener": self.whitener, "bank": self.bank.half()}

    def restore(self, tensors: dict[str, Tensor], path: Path) -> None:  # noqa: ARG002
        self.mean, self.whitener = tensors["mean"], tensors["whitener"]
        self.bank = tensors["bank"].float()
        size = len(self.mean)
        if self.whitener.shape != (size, size) or self.bank.shape[1:] != (size,):
            raise ValueError("a bank of the wrong shape")
        if len(self.bank) < self.settings.nearest:
            raise ValueError(f"a bank of {len(self.bank)} patches")


def covariance(centred: Tensor) -> Tensor:
    """Of centred vectors (n, d): (d, d)."""
    return (centred.T @ centred).double() / len(centred)


def whitening(covariance: Tensor, ridge: float) -> Tensor:
    """A matrix (d, d) that makes vectors of this covariance white, a ridge in units of their mean
    variance added: directions that hardly vary must not decide alone.
    """
    added = ridge * covariance.diagonal().mean() * torch.eye(len(covariance), dtype=torch.float64)
    variance, direction = torch.linalg.eigh(covariance + added)
    # As a file gives it back: sums depend on the order in memory.
    white: Tensor = (direction / variance.sqrt()).float().contiguous()
    return white


def without_ridge(ridged: Tensor, ridge: float) -> Tensor:
    """The covariance that `whitening` added its ridge to."""
    added = ridge / (1 + ridge) * ridged.diagonal().mean()
    return ridged - added * torch.eye(len(ridged), dtype=torch.float64)


def coreset(white: Tensor, count: int, rng: torch.Generator) -> Tensor:
    """The numbers of `count` vectors (n, d) that leave none far away: greedy k-centre, on random
    projections.
    """
    projection = torch.randn(white.shape[1], PROJECTED, generator=rng) / PROJECTED**0.5
    projected = white @ projection
    lengths = projected.square().sum(dim=1)
    furthest = int(torch.randint(len(white), (1,), generator=rng))
    distance = torch.full((len(white),), torch.inf)
    chosen = []
    for _ in range(min(count, len(white))):
        chosen.append(furthest)
        to_it = lengths - 2 * (projected @ projected[furthest]) + lengths[furthest]
        distance = torch.minimum(distance, to_it)
        furthest = int(distance.argmax())
    return torch.tensor(chosen)
