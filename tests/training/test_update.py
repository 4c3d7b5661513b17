"""More good images for a finished model: as good as training on all of them, the former ones still
pass, and what is not exact or not promised is said.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Heard, edit, spotted, stripes

from igd import IGD
from igd.errors import UserError
from igd.scales.embedding import EmbeddingScale
from igd.scales.fusion import Fusion, RobustScaler
from igd.scales.position_moments import PositionMoments

pytestmark = pytest.mark.xdist_group("update")
SIDE, SOME, NEW = 96, 24, 30


def normal(count: int, seed: int) -> np.ndarray:
    return stripes(count, SIDE, seed, colour=True)


def relit(images: np.ndarray) -> np.ndarray:
    """The same under a weaker, warmer lamp."""
    return (images * np.array([0.8, 0.7, 0.6])).astype(np.uint8)


def alarms(detector: IGD, images: np.ndarray) -> float:
    return float(np.mean([each.is_anomalous for each in detector.predict(images)]))


@pytest.fixture(scope="module")
def learnt() -> IGD:
    return IGD(image_size=SIDE, max_false_alarms=0.1).fit(normal(SOME, 0))


@pytest.fixture(scope="module")
def simple() -> IGD:
    """Of one scale: for what does not depend on scales."""
    return IGD(image_size=SIDE, scales=("position",)).fit(normal(SOME, 0))


@pytest.fixture(scope="module")
def updated(learnt: IGD) -> IGD:
    return copy.deepcopy(learnt).update(relit(normal(NEW, 1)))


def test_a_new_lamp_is_no_alarm_any_more_nor_is_the_old_one(learnt: IGD, updated: IGD) -> None:
    good = normal(30, 2)
    assert alarms(learnt, relit(good)) == 1
    assert alarms(updated, relit(good)) <= 0.3
    assert alarms(updated, good) <= 0.3
    for light in (good, relit(good)):
        assert alarms(updated, spotted(light, (40, 40), 16)) == 1


def test_moments_are_those_of_all_images_together(learnt: IGD, updated: IGD) -> None:
    both = IGD(image_size=SIDE).fit(np.concatenate([normal(SOME, 0), relit(normal(NEW, 1))]))
    pixels = torch.from_numpy(relit(normal(6, 3)).transpose(0, 3, 1, 2).copy())
    features = both.fitted_.features(pixels)
    tolerances = {"position": 0.03, "bank": 0.5, "whole": 1e-3}
    scales = (each.fitted_.scales for each in (both, updated, learnt))
    for once, added, former in zip(*scales, strict=True):
        limit = tolerances[once.settings.name]
        for exact, close, far in zip(
            *(each.distances(features) for each in (once, added, former)), strict=True
        ):
            assert ((close - exact).abs() / exact).mean() < limit
            assert (far / exact).mean() > 1 + 2 * limit


def test_twice_is_once_with_both(learnt: IGD) -> None:
    """Neither order nor number of updates matters, but for the choice of patches."""
    first, second = relit(normal(12, 4)), relit(normal(12, 5))
    once = copy.deepcopy(learnt).update(np.concatenate([first, second]))
    twice = copy.deepcopy(learnt).update(first).update(second)
    shown = np.concatenate([normal(5, 6), relit(normal(5, 6)), spotted(normal(5, 6), (40, 40), 16)])
    one, other = -once.score_samples(shown), -twice.score_samples(shown)
    np.testing.assert_allclose(one, other, atol=0.06)
    assert len(once.calibration_.scores) == len(twice.calibration_.scores) == SOME + 24
    assert once.provenance_["images"] == twice.provenance_["images"] == SOME + 24
    assert [each["images"] for each in twice.provenance_["updates"]] == [12, 12]
    assert [each.how for each in twice.fitted_.former] == ["cross-fitted", "updated"]


def test_the_file_keeps_all_of_it_and_what_was_before(updated: IGD, tmp_path: Path) -> None:
    updated.save(tmp_path / "updated.igd")
    loaded = IGD.load(tmp_path / "updated.igd")
    image = relit(normal(1, 7))[0]
    assert loaded.predict(image).score == updated.predict(image).score
    assert loaded.threshold_ == updated.threshold_ == pytest.approx(0.5)
    (former,) = loaded.fitted_.former
    assert (former.how, former.images, former.false_alarm_rate) == ("cross-fitted", SOME, 0.1)
    made = loaded.provenance_
    assert (made["calibration"], made["calibration_images"]) == ("updated", SOME + NEW)
    (told,) = made["updates"]
    assert (told["images"], told["alarms_before"]) == (NEW, NEW)
    assert told["alarms"] <= 0.3 * NEW
    again = loaded.update(normal(4, 8))
    assert again.provenance_["calibration_by_images"] == SOME
    for wrong in ({"updates": [1]}, {"updates": [{**told, "images": "many"}]}):
        broken = edit(tmp_path / "updated.igd", lambda each, w=wrong: each["provenance"].update(w))
        with pytest.raises(UserError, match="tells of an update"):
            IGD.load(broken)


def test_former_scores_and_new_ones_set_the_threshold(learnt: IGD, updated: IGD) -> None:
    """Former images keep their order, and each p-value is that among all of them."""
    before, after = learnt.calibration_, updated.calibration_
    assert (np.argsort(before.scores) == np.argsort(after.scores[:SOME])).all()
    moved = learnt.fitted_.fusion.unbounded(torch.tensor(before.scores).double())
    kept = updated.fitted_.fusion.unbounded(torch.tensor(after.scores[:SOME]).double())
    torch.testing.assert_close(moved, kept, rtol=1e-4, atol=1e-4)
    allowed = int(0.1 * (SOME + NEW + 1))
    assert (after.scores > after.threshold).sum() <= allowed


def test_new_images_are_measured_by_models_that_did_not_learn_from_them(simple: IGD) -> None:
    """One that is odd stays odd, although the model then knows it."""
    odd = np.concatenate([normal(11, 9), spotted(normal(1, 10), (40, 40), 24)])
    said = Heard()
    known = copy.deepcopy(simple).update(odd, progress=said)
    own = known.calibration_.scores[-12:]
    assert own[-1] == own.max()
    assert own[-1] > 1.2 * known.predict(odd[-1]).score
    assert any("far above the rest" in line and "11" in line for line in said.messages)


def test_one_image_is_measured_by_the_former_model(simple: IGD) -> None:
    image = relit(normal(1, 11))
    known = copy.deepcopy(simple).update(image)
    score = simple.predict(image[0]).score
    deviation = simple.fitted_.fusion.unbounded(torch.tensor(score).double())
    kept = known.fitted_.fusion.unbounded(torch.tensor(known.calibration_.scores[-1]).double())
    torch.testing.assert_close(kept, deviation, rtol=1e-3, atol=1e-3)


def test_what_is_not_promised_is_said(simple: IGD) -> None:
    said = Heard()
    copy.deepcopy(simple).update(normal(4, 12), progress=said)
    assert not said.messages
    copy.deepcopy(simple).update(normal(SOME, 0), progress=said)
    assert any("they count twice" in line for line in said.messages)
    assert any("the threshold is cautious" in line for line in said.messages)


def test_a_model_that_grew_may_promise_less(simple: IGD) -> None:
    """More calibration images allow a lower rate, where none was asked for."""
    few = IGD(image_size=SIDE, scales=("position",)).fit(normal(9, 0))
    assert few.false_alarm_rate_ == pytest.approx(0.1)
    assert few.update(normal(10, 1)).false_alarm_rate_ == pytest.approx(0.05)
    asked = copy.deepcopy(simple).update(normal(4, 1), max_false_alarms=0.05)
    assert asked.max_false_alarms == asked.false_alarm_rate_ == 0.05
    with pytest.raises(UserError, match=r"0\.01 needs at least 99 .*add good images to the array"):
        copy.deepcopy(simple).update(normal(4, 1), max_false_alarms=0.01)


def test_groups_stay_together_and_are_asked_for() -> None:
    groups = np.repeat(np.arange(12), 2)
    detector = IGD(image_size=SIDE, scales=("position",)).fit(normal(24, 0), groups=groups)
    with pytest.raises(UserError, match="say which of these images belong together"):
        copy.deepcopy(detector).update(normal(8, 1))
    detector.update(normal(8, 1), groups=[5, 5, 5, 5, 6, 6, 7, 7])
    made = detector.provenance_
    assert (made["groups"], made["images"], len(detector.calibration_.scores)) == (15, 32, 15)


def test_what_can_not_learn_more_says_so(fitted: IGD, learnt: IGD) -> None:
    with pytest.raises(UserError, match=r"the scale global can't learn .*igd calibrate"):
        copy.deepcopy(fitted).update(stripes(10))
    with pytest.raises(UserError, match="700 images; a model learns from 600 more at a time"):
        copy.deepcopy(learnt).update(np.zeros((700, 16, 16, 3), np.uint8))


@pytest.mark.parametrize(("cell", "ridge"), [(1, 1e-4), (2, 0.1)])
def test_moments_behind_a_descriptor(cell: int, ridge: float) -> None:
    rng = torch.Generator().manual_seed(0)
    features = torch.randn(50, 5, 6, 8, generator=rng) * torch.arange(1, 9)
    moments = PositionMoments((cell, cell))
    moments.update(features)
    shrinkage = (0.25, 0.1, ridge)
    behind = PositionMoments.behind(moments.describe(*shrinkage), 50, *shrinkage)
    torch.testing.assert_close(behind.mean.float(), moments.mean.float())
    torch.testing.assert_close(behind.scatter, moments.scatter, rtol=1e-3, atol=1e-2)


def test_a_score_and_its_deviation() -> None:
    deviation = torch.linspace(-30, 30, 101, dtype=torch.float64)
    for fusion in (Fusion([RobustScaler(0, 1)], threshold=4.0), Fusion()):
        torch.testing.assert_close(fusion.unbounded(fusion.bounded(deviation)), deviation)


def test_a_model_of_small_images_learns_each_of_them_once() -> None:
    """Its Gaussian was shared by the former model, the new one and all folds."""
    former, new = stripes(40), (stripes(30, seed=1) * 0.6).astype(np.uint8)
    learnt = IGD(max_false_alarms=0.1).fit(former)
    before = learnt.predict(former[0]).score
    both = IGD().fit(np.concatenate([former, new]))
    updated = copy.deepcopy(learnt).update(new)
    gaussians = [
        next(scale.gaussian for scale in each.fitted_.scales if isinstance(scale, EmbeddingScale))
        for each in (learnt, updated, both)
    ]
    assert torch.dist(gaussians[1].mean, gaussians[2].mean) < 1e-5
    assert torch.dist(gaussians[0].mean, gaussians[2].mean) > 1e-2
    state = learnt.fitted_
    learnt.update(new)
    learnt.fitted_ = state
    assert learnt.predict(former[0]).score == before
    assert alarms(updated, stripes(60, seed=2)) <= 0.2
    assert alarms(updated, (stripes(60, seed=3) * 0.6).astype(np.uint8)) <= 0.2
