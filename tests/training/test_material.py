"""Odd images among the normal ones are named, and left out if the user says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Heard, spotted, stripes, write_images

from igd import IGD
from igd.errors import UserError

SIDE = 96
ODD = {3: (8, 8), 11: (40, 60), 27: (66, 20)}  # where each has its square


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Normal images, three of which have a bright square."""
    images = stripes(40, SIDE, colour=True)
    for number, place in ODD.items():
        images[number] = spotted(images[number : number + 1], place, 24)[0]
    return images


@pytest.fixture(scope="module")
def trained(images: np.ndarray) -> dict[bool, tuple[IGD, list[str]]]:
    """A detector with the odd images, and one without."""
    found = {}
    for exclude in (False, True):
        heard = Heard()
        detector = IGD(exclude_odd=exclude, image_size=SIDE).fit(images, progress=heard)
        found[exclude] = detector, heard.messages
    return found


def test_they_are_named(trained: dict[bool, tuple[IGD, list[str]]]) -> None:
    detector, heard = trained[False]
    (said,) = (message for message in heard if "far above the rest" in message)
    assert said.startswith("3 of 40 normal images")
    assert all(str(number) in said.partition(":")[2] for number in ODD)
    assert "--exclude-odd" in said
    assert said in detector.provenance_["warnings"]


def test_left_out_they_no_longer_set_the_threshold(
    trained: dict[bool, tuple[IGD, list[str]]], images: np.ndarray
) -> None:
    kept, left_out = trained[False][0], trained[True][0]
    said = [message for message in trained[True][1] if message.startswith("left out")]
    assert all(any(f" {number}" in each.partition(":")[2] for each in said) for number in ODD)
    assert sum(int(each.split()[2]) for each in said) == 3
    assert left_out.provenance_["images"] == len(left_out.calibration_.scores) == 37
    assert {*said} <= {*left_out.provenance_["warnings"]}
    defects = spotted(stripes(8, SIDE, seed=9, colour=True), (8, 60), 12)
    found = [[each.is_anomalous for each in one.predict(defects)] for one in (kept, left_out)]
    assert sum(found[1]) == 8 > sum(found[0])
    others = [number for number in range(len(images)) if number not in ODD]
    alone = IGD(image_size=SIDE).fit(images[others])
    # As if they had never been there, but for the order in which folds are dealt.
    assert left_out.predict(images[0]).score == pytest.approx(alone.predict(images[0]).score, abs=0)


def test_of_images_given_apart_they_no_longer_calibrate(images: np.ndarray) -> None:
    heard = Heard()
    normal = stripes(20, SIDE, seed=5, colour=True)
    detector = IGD(exclude_odd=True, image_size=SIDE).fit(
        normal, calibration_images=images, progress=heard
    )
    left_out = [message for message in heard.messages if message.startswith("left out")]
    count = sum(int(message.split()[2]) for message in left_out)
    assert count >= 2  # of those that do not scale the parts
    assert detector.provenance_["images"] == 20
    assert len(detector.calibration_.scores) == 30 - count


def test_too_many_are_no_longer_odd(images: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igd.training.material.LEAST_KEPT", 0.99)
    with pytest.raises(UserError, match="may be of several kinds"):
        IGD(exclude_odd=True, image_size=SIDE).fit(images)


def test_trained_scales_stay_as_they_are_and_unreadable_images_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = stripes(120)
    for number in range(0, 120, 17):
        images[number] = 255 - spotted(images[number : number + 1], (number // 6, 4), 12)[0]
    folder = write_images(tmp_path / "good", images)
    (folder / "broken.png").write_bytes(b"no picture")
    settings = {"pretrain": "scratch", "steps": 40, "width": 4, "calibration": 0.5}
    heard = Heard()
    kept = IGD(**settings).fit(folder)
    with monkeypatch.context() as patched:
        patched.setattr("igd.training.calibrate.ODD", 2.0)  # so short a training tells little
        left_out = IGD(**settings, exclude_odd=True).fit(folder, progress=heard)
    assert any(
        message.startswith("left out") and "far above" in message for message in heard.messages
    )
    one, other = (detector.fitted_.scales[0].tensors() for detector in (kept, left_out))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert len(left_out.provenance_["skipped"]) == 1
    assert left_out.provenance_["images"] == kept.provenance_["images"]
    large = stripes(41, SIDE, colour=True)
    large[4] = spotted(large[4:5], (8, 8), 40)[0]
    folder = write_images(tmp_path / "large", large)
    (folder / "broken.png").write_bytes(b"no picture")
    detector = IGD(image_size=SIDE, exclude_odd=True).fit(folder)
    assert detector.provenance_["images"] == 40
    assert len(detector.provenance_["skipped"]) == 1
    assert detector.provenance_["image_mode"] == "in colour"
