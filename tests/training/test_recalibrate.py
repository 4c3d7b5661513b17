"""A threshold from new good images: the promise is kept, what was learnt stays, the past is told,
and images that were learnt from are noticed.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from conftest import Heard, spotted, stripes

from igd import IGD
from igd.errors import UserError
from igd.training.calibration_history import MOST_KEPT

SIDE = 96


def darker(images: np.ndarray) -> np.ndarray:
    """The same under a weaker, warmer lamp."""
    return (images * np.array([0.8, 0.7, 0.6])).astype(np.uint8)


@pytest.fixture(scope="module")
def learnt() -> IGD:
    return IGD(image_size=SIDE, max_false_alarms=0.1).fit(stripes(24, SIDE, colour=True))


@pytest.fixture(scope="module")
def moved(learnt: IGD) -> IGD:
    return copy.deepcopy(learnt).calibrate(darker(stripes(40, SIDE, 1, colour=True)))


def alarms(detector: IGD, images: np.ndarray) -> float:
    return float(np.mean([each.is_anomalous for each in detector.predict(images)]))


def test_other_light_is_no_alarm_any_more_and_defects_still_are(learnt: IGD, moved: IGD) -> None:
    good = darker(stripes(40, SIDE, 2, colour=True))
    assert alarms(learnt, good) == 1
    assert alarms(moved, good) <= 0.3
    assert alarms(moved, spotted(good, (40, 40), 16)) == 1


def test_good_images_look_calm_under_other_light(learnt: IGD, moved: IGD) -> None:
    image = darker(stripes(1, SIDE, 3, colour=True))[0]
    assert (learnt.predict(image).map > learnt.pixel_threshold_).mean() > 0.5
    assert (moved.predict(image).map > moved.pixel_threshold_).mean() < 0.05


def test_scales_stay_and_deviations_stay_but_medians_move(learnt: IGD, moved: IGD) -> None:
    for one, other in zip(learnt.fitted_.scales, moved.fitted_.scales, strict=True):
        for name, tensor in one.tensors().items():
            assert tensor.equal(other.tensors()[name])
    before, after = learnt.fitted_.fusion, moved.fitted_.fusion
    assert [each.mad for each in before.scalers] == [each.mad for each in after.scalers]
    assert all(
        one.median < other.median for one, other in zip(before.scalers, after.scalers, strict=True)
    )
    assert moved.threshold_ == pytest.approx(0.5)


def test_the_promise_is_that_of_images_that_were_not_learnt_from(moved: IGD) -> None:
    made = moved.provenance_
    assert (made["calibration_images"], made["measuring_images"]) == (30, 10)
    assert made["calibration"] == "separate images"
    assert made["images"] == 24
    assert len(moved.calibration_.scores) == 30
    assert moved.false_alarm_rate_ == moved.max_false_alarms == 0.1


def test_the_past_is_in_the_file(moved: IGD, tmp_path: Path) -> None:
    moved.save(tmp_path / "moved.igd")
    loaded = IGD.load(tmp_path / "moved.igd")
    (former,) = loaded.fitted_.former
    assert (former.how, former.images, former.false_alarm_rate) == ("cross-fitted", 24, 0.1)
    assert loaded.fitted_.former == moved.fitted_.former
    assert loaded.threshold_ == moved.threshold_


def test_the_past_is_bounded(fitted: IGD) -> None:
    detector = copy.deepcopy(fitted)
    for number in range(MOST_KEPT + 2):
        detector.calibrate(stripes(10 + number, seed=5), max_false_alarms=0.2)
    former = detector.fitted_.former
    assert len(former) == MOST_KEPT
    assert [each.images for each in former] == list(range(11, 11 + MOST_KEPT))


def test_too_few_images_are_refused_and_nothing_changes(learnt: IGD) -> None:
    detector = copy.deepcopy(learnt)
    with pytest.raises(
        UserError,
        match=r"0\.1 needs at least 9 calibration images, and there are 8; add good images to "
        r"the array \(2 of its 10 scale .*accept a rate of 0\.111",
    ):
        detector.calibrate(stripes(10, SIDE, 1, colour=True))
    with pytest.raises(UserError, match=r"0\.01 needs at least 99"):
        detector.calibrate(stripes(40, SIDE, 1, colour=True), max_false_alarms=0.01)
    assert detector.threshold_ == learnt.threshold_
    assert detector.max_false_alarms == 0.1
    assert not detector.fitted_.former


def test_images_that_were_learnt_from_are_noticed(learnt: IGD) -> None:
    said = Heard()
    copy.deepcopy(learnt).calibrate(stripes(24, SIDE, colour=True), progress=said)
    assert any("if it learnt from these" in line for line in said.messages)
    said = Heard()
    copy.deepcopy(learnt).calibrate(stripes(24, SIDE, 7, colour=True), progress=said)
    assert not any("learnt from" in line for line in said.messages)


def test_a_grey_model_reads_colour_images_as_it_predicts_them(fitted: IGD) -> None:
    grey = copy.deepcopy(fitted).calibrate(stripes(30, seed=5))
    colour = copy.deepcopy(fitted).calibrate(stripes(30, seed=5, colour=True))
    np.testing.assert_array_equal(grey.calibration_.scores, colour.calibration_.scores)


def test_calibration_scores_are_the_scores_of_the_images(fitted: IGD) -> None:
    images = stripes(30, seed=5)
    detector = copy.deepcopy(fitted).calibrate(images)
    scores = sorted(each.score for each in detector.predict(images))
    np.testing.assert_allclose(sorted(detector.calibration_.scores), scores, atol=1e-6)


def test_training_with_images_of_its_own_to_calibrate() -> None:
    images, others = stripes(12, SIDE, colour=True), stripes(20, SIDE, 1, colour=True)
    detector = IGD(image_size=SIDE, max_false_alarms=0.1).fit(images, calibration_images=others)
    made = detector.provenance_
    assert (made["images"], made["calibration_images"], made["measuring_images"]) == (12, 15, 5)
    assert made["calibration"] == "separate images"
    with pytest.raises(UserError, match="needs at least 19 calibration images, and there are 15"):
        IGD(image_size=SIDE, max_false_alarms=0.05).fit(images, calibration_images=others)
    with pytest.raises(UserError, match=r"calibration=0\.5 has no effect"):
        IGD(image_size=SIDE, calibration=0.5).fit(images, calibration_images=others)
