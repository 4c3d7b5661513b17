"""Cross-fitting: no image is measured by a model that learnt from it, and none is left out."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.inference.conformal import threshold
from igd.progress import Progress
from igd.scales.bank import BankScale
from igd.scales.base import FeatureScale, ScaleOutput
from igd.scales.position import PositionScale
from igd.scales.scale_settings import BankSettings, Level, PositionSettings, WholeSettings
from igd.scales.whole import WholeScale
from igd.training.crossfit import (
    FOLDS,
    cross_fit,
    distances_of,
    learn,
    leaving_out,
    outputs_of,
)
from igd.training.split import one_of_each


class Remembers(FeatureScale):
    """Distance 0 from what it learnt from, else 1; images are told apart by their first feature."""

    class settings:  # noqa: N801
        name = "remembers"

    def learn(self, features: Features, rng: torch.Generator) -> None:
        self.known = set(features.maps[0][:, 0, 0, 0].tolist())

    def extend(self, features, count, rng):
        raise NotImplementedError

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


def numbered(count: int) -> Features:
    return Features([torch.arange(count).view(-1, 1, 1, 1).half()], None)


def test_every_image_is_measured_once_in_order_by_a_model_that_does_not_know_it() -> None:
    for count in (3, FOLDS, 23):
        ((unknown, which),) = cross_fit(lambda: [Remembers()], numbered(count), 0, Progress())
        assert unknown.tolist() == [1.0] * count
        assert which.tolist() == list(range(count))


def test_images_of_one_group_are_in_one_fold() -> None:
    groups = torch.randint(0, 9, (40,), generator=torch.Generator().manual_seed(0))
    groups = groups.unique(return_inverse=True)[1]

    class ByGroup(Remembers):
        def distances(self, features: Features) -> list[Tensor]:
            measured = [int(value) for value in features.maps[0][:, 0, 0, 0]]
            known = {int(groups[int(each)]) for each in self.known}
            return [
                torch.tensor([float(int(groups[each]) not in known) for each in measured]),
                torch.tensor(measured),
            ]

    ((unknown, which),) = cross_fit(lambda: [ByGroup()], numbered(40), 0, Progress(), groups)
    assert unknown.tolist() == [1.0] * 40
    assert which.tolist() == list(range(40))


class Nearest(Remembers):
    """Distance from the nearest image that it learnt from."""

    def learn(self, features: Features, rng: torch.Generator) -> None:
        self.known = features.maps[0].flatten(1).float()

    def distances(self, features: Features) -> list[Tensor]:
        return [torch.cdist(features.maps[0].flatten(1), self.known).amin(dim=1)]


def near_copies(patients: int, copies: int, rng: torch.Generator) -> Features:
    middles = torch.randn(patients, 4, 1, 1, generator=rng).repeat_interleave(copies, dim=0)
    return Features([(middles + 0.01 * torch.randn(middles.shape, generator=rng)).half()], None)


def test_the_promise_holds_for_new_patients_with_groups_and_not_without() -> None:
    """60 patients with 4 near copies each: images of other patients are all alarms where a copy of
    each calibration image was learnt from.
    """
    rng, groups = torch.Generator().manual_seed(0), torch.arange(60).repeat_interleave(4)
    rates: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(60):
        learnt, others = near_copies(60, 4, rng), near_copies(12, 4, rng)
        model = Nearest()
        model.learn(learnt, rng)
        (new,) = model.distances(others.float())
        for grouped, by in ((True, groups), (False, None)):
            ((scores,),) = cross_fit(lambda: [Nearest()], learnt, seed, Progress(), by)
            if by is not None:
                scores = scores[one_of_each(torch.arange(240), by, seed)]
            rates[grouped].append((new > threshold(scores, 0.05)).float().mean().item())
    assert 0.005 < torch.tensor(rates[True]).mean() < 0.06
    assert min(rates[False]) > 0.8


def test_outputs_come_in_order_batch_after_batch() -> None:
    distances = cross_fit(lambda: [Remembers()], numbered(40), 0, Progress())
    together = [output.parts[1] for (output,) in outputs_of([Remembers()], distances, (8, 8))]
    assert torch.cat(together).tolist() == list(range(40))


def test_the_seed_deals_the_folds() -> None:
    seen = []

    class Watched(Remembers):
        def learn(self, features: Features, rng: torch.Generator) -> None:
            super().learn(features, rng)
            seen.append(frozenset(self.known))

    for seed in (0, 0, 1):
        cross_fit(lambda: [Watched()], numbered(20), seed, Progress())
    assert seen[:FOLDS] == seen[FOLDS : 2 * FOLDS] != seen[2 * FOLDS :]


@pytest.mark.parametrize(
    "fresh",
    [
        lambda: WholeScale(WholeSettings(maps=(0,))),
        lambda: BankScale(BankSettings(maps=(0,))),
    ],
    ids=["whole", "bank"],
)
def test_what_is_gathered_once_teaches_what_the_others_teach(
    fresh: Callable[[], FeatureScale],
) -> None:
    rng = torch.Generator().manual_seed(0)
    features = Features([torch.randn(30, 6, 4, 4, generator=rng).half()], None)
    held_out = torch.tensor([3, 17, 29])
    taught, direct = fresh(), fresh()
    leaving_out([fresh()], features)([taught], features, held_out, 0)
    learn([direct], features.without(held_out), 0)
    known, wanted = taught.tensors(), direct.tensors()
    assert all(known[name].equal(wanted[name]) for name in wanted)
    learn([direct], features, 0)
    assert not known["mean"].equal(direct.tensors()["mean"])


@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_leaving_out_is_learning_from_the_others(outlier: float) -> None:
    """Even where one of those left out holds nearly all of the scatter."""
    rng = torch.Generator().manual_seed(0)
    maps = torch.randn(40, 6, 4, 4, generator=rng)
    maps = torch.cat([maps[:1] + maps[1:] / outlier, maps[:1].flip(1)]).half()
    features, held_out = Features([maps], None), torch.tensor([3, 17, 18, 39])
    settings = PositionSettings(levels=(Level("one", (0,)),))
    taken_out, direct = PositionScale(settings), PositionScale(settings)
    leaving_out([PositionScale(settings)], features)([taken_out], features, held_out, 0)
    learn([direct], features.without(held_out), 0)
    measured = [distances_of([each], features)[0][0] for each in (taken_out, direct)]
    torch.testing.assert_close(*measured, rtol=2e-3, atol=1e-4)  # descriptors are half precision
