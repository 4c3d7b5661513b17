"""Cross-fitting: no image is measured by a model that learnt from it, and none is left out."""

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.progress import Progress
from igd.scales.base import FeatureScale, ScaleOutput
from igd.training.crossfit import FOLDS, cross_fit, outputs_of


class Remembers(FeatureScale):
    """Distance 0 from what it learnt from, else 1; images are told apart by their first feature."""

    class settings:  # noqa: N801
        name = "remembers"

    def learn(self, maps: list[Tensor], rng: torch.Generator) -> None:
        self.known = set(maps[0][:, 0, 0, 0].tolist())

    def distances(self, features: Features) -> list[Tensor]:
        first = features.maps[0][:, 0, 0, 0].tolist()
        return [
            torch.tensor([float(value not in self.known) for value in first]),
            torch.tensor(first),
        ]

    def output(self, distances: list[Tensor], size: tuple[int, int]) -> ScaleOutput:
        return ScaleOutput(distances, [1.0, 1.0], {}, [], [])

    def latents(self, pixels, features):
        raise NotImplementedError

    def tensors(self):
        raise NotImplementedError

    def restore(self, tensors, path):
        raise NotImplementedError


def levels(count: int) -> list[Tensor]:
    return [torch.arange(count).view(-1, 1, 1, 1).half()]


def test_every_image_is_measured_once_in_order_by_a_model_that_does_not_know_it() -> None:
    for count in (3, FOLDS, 23):
        ((unknown, which),) = cross_fit(lambda: [Remembers()], levels(count), 0, Progress())
        assert unknown.tolist() == [1.0] * count
        assert which.tolist() == list(range(count))


def test_outputs_come_in_order_batch_after_batch() -> None:
    distances = cross_fit(lambda: [Remembers()], levels(40), 0, Progress())
    together = [output.parts[1] for (output,) in outputs_of([Remembers()], distances, (8, 8))]
    assert torch.cat(together).tolist() == list(range(40))


def test_the_seed_deals_the_folds() -> None:
    seen = []

    class Watched(Remembers):
        def learn(self, maps: list[Tensor], rng: torch.Generator) -> None:
            super().learn(maps, rng)
            seen.append(frozenset(self.known))

    for seed in (0, 0, 1):
        cross_fit(lambda: [Watched()], levels(20), seed, Progress())
    assert seen[:FOLDS] == seen[FOLDS : 2 * FOLDS] != seen[2 * FOLDS :]
