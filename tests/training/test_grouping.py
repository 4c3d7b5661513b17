"""A detector of images with groups: what calibrates it, what its file says, what is refused."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes

from igd import IGD
from igd.deploy.export import describe
from igd.errors import UserError

pytestmark = pytest.mark.filterwarnings("ignore:.*model:")
QUICK = {"pretrain": "scratch", "combination": "sum", "steps": 2, "width": 2}
PATIENTS = [f"patient-{number}" for number in range(10) for _ in range(3)]


@pytest.fixture(scope="module")
def grouped() -> IGD:
    return IGD(**QUICK, calibration=0.4).fit(stripes(30), groups=PATIENTS)


def test_one_image_of_each_held_out_group_calibrates(grouped: IGD) -> None:
    made = grouped.provenance_
    assert (made["images"], made["calibration_images"]) == (18, 4)  # six groups and four
    assert (made["grouped_by"], made["groups"]) == ("groups", 10)


def test_the_file_says_how_groups_were_made_and_names_none(grouped: IGD, tmp_path: Path) -> None:
    grouped.save(tmp_path / "model.igd")
    assert b"patient-" not in (tmp_path / "model.igd").read_bytes()
    loaded = IGD.load(tmp_path / "model.igd")
    assert loaded.provenance_["grouped_by"] == "groups"
    assert describe(loaded)["provenance"]["grouped_by"] == "groups"
    assert "patient-" not in str(describe(loaded))
    np.testing.assert_array_equal(loaded.calibration_.scores, grouped.calibration_.scores)


def test_groups_of_one_image_change_nothing() -> None:
    plain = IGD(**QUICK).fit(stripes(12))
    alone = IGD(**QUICK).fit(stripes(12), groups=np.arange(12) + 10)
    np.testing.assert_array_equal(plain.calibration_.scores, alone.calibration_.scores)


def test_calibrating_anew_tells_the_groups_of_its_own_images(grouped: IGD) -> None:
    images = stripes(30, seed=6)
    anew = copy.deepcopy(grouped).calibrate(images, groups=np.repeat(np.arange(15), 2))
    assert (anew.provenance_["groups"], len(anew.calibration_.scores)) == (15, 15)
    plain = anew.calibrate(images)
    assert "groups" not in plain.provenance_
    assert "grouped_by" not in plain.provenance_
    assert len(plain.calibration_.scores) == 30


def test_too_few_groups_for_a_rate(grouped: IGD) -> None:
    with pytest.raises(
        UserError,
        match=r"0\.05 needs at least 19 calibration groups, and there are 4; give more normal "
        r"groups, .*--calibration.* rate of 0\.2",
    ):
        IGD(**QUICK, calibration=0.4, max_false_alarms=0.05).fit(stripes(30), groups=PATIENTS)
    with pytest.raises(UserError, match="calibration groups, and there are 10; add good images of"):
        copy.deepcopy(grouped).calibrate(stripes(30), groups=PATIENTS, max_false_alarms=0.05)
    with pytest.raises(UserError, match=r"its 30 images are of 2 group\(s\), by groups; 3 are"):
        IGD(**QUICK).fit(stripes(30), groups=np.arange(30) % 2)


def test_separate_images_have_groups_of_their_own() -> None:
    others = stripes(8, seed=7)
    separate = IGD(**QUICK).fit(
        stripes(12),
        groups=np.arange(12) // 2,
        calibration_images=others,
        calibration_groups=[f"new {number // 2}" for number in range(8)],
    )
    assert (separate.provenance_["images"], separate.provenance_["calibration_images"]) == (12, 4)
    with pytest.raises(UserError, match="calibration_groups has no effect"):
        IGD(**QUICK).fit(stripes(12), calibration_groups=np.arange(8))
