"""A detector with a region of interest, from training to pictures: nothing outside of it can raise
an alarm.
"""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Heard, spotted, stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main
from igd.data.sample import Sample
from igd.errors import UserError
from igd.evaluation.audit import audit
from igd.evaluation.evaluate import evaluate
from igd.evaluation.overlay import coloured_map, layer, overlay

SIDE = 96
# Of 96 pixels, the columns from 8 to 80, without a box at the upper left of them.
REGION = {"roi": "8,0,72,96", "ignore": ["8,0,30,30"]}
OUTSIDE, IGNORED, INSIDE = (60, 84), (4, 12), (60, 40)  # row and column of a spot of 12 pixels

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*model.*"),
    pytest.mark.xdist_group("region of interest"),
]


def parts(count: int, seed: int) -> np.ndarray:
    return stripes(count, SIDE, seed, colour=True)


@pytest.fixture(scope="module")
def aimed() -> IGD:
    return IGD(image_size=SIDE, max_false_alarms=0.1, **REGION).fit(parts(30, 0))


def test_only_what_is_inside_changes_anything(aimed: IGD) -> None:
    images = parts(3, 1)
    plain = aimed.predict(images)
    for place in (OUTSIDE, IGNORED):
        for one, other in zip(plain, aimed.predict(spotted(images, place, 12)), strict=True):
            assert (one.score, one.p_value, one.terms) == (other.score, other.p_value, other.terms)
            np.testing.assert_array_equal(one.map, other.map)
    for one, other in zip(plain, aimed.predict(spotted(images, INSIDE, 12)), strict=True):
        assert other.score > one.score
        assert other.is_anomalous
        row, column = np.unravel_index(int(other.map.argmax()), other.map.shape)
        assert abs(row - INSIDE[0] - 6) < 12
        assert abs(column - INSIDE[1] - 6) < 12


def test_maps_and_their_levels_are_of_the_region(aimed: IGD) -> None:
    outside = aimed.geometry_.outside(SIDE, SIDE)
    assert outside is not None
    assert outside.sum() == 96 * 24 + 900
    prediction = aimed.predict(parts(1, 2)[0])
    assert not prediction.map[outside].any()
    assert (prediction.map[~outside] > 0).all()
    assert 0 < aimed.background_level_ < aimed.pixel_threshold_


def test_what_is_saved_is_what_was_aimed(aimed: IGD, tmp_path: Path) -> None:
    aimed.save(tmp_path / "parts.igd")
    loaded = IGD.load(tmp_path / "parts.igd")
    assert loaded.geometry_ == aimed.geometry_
    assert (loaded.roi, loaded.ignore) == ("8,0,72,96", ["8,0,30,30"])
    images = spotted(parts(2, 3), INSIDE, 12)
    for one, other in zip(aimed.predict(images), loaded.predict(images), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        np.testing.assert_allclose(one.map, other.map, atol=1e-5)


def test_calibrating_again_keeps_the_region(aimed: IGD) -> None:
    images = spotted(parts(24, 4), OUTSIDE, 12)
    one, other = (copy.deepcopy(aimed).calibrate(each) for each in (images, parts(24, 4)))
    assert one.threshold_ == other.threshold_
    assert one.pixel_threshold_ == other.pixel_threshold_


def test_images_of_another_size_are_scaled_and_of_another_shape_refused(aimed: IGD) -> None:
    image = Image.fromarray(spotted(parts(1, 5), INSIDE, 12)[0])
    double = aimed.predict(image.resize((192, 192), Image.Resampling.NEAREST))
    assert "of another size than 96x96, so that the region of interest is scaled" in (
        double.mismatches
    )
    assert double.score == pytest.approx(aimed.predict(image).score, abs=0.05)
    with pytest.raises(UserError, match="192x96 pixels have another aspect ratio"):
        aimed.predict(image.resize((192, 96)))
    heard = Heard()
    doubled = [each.repeat(2, axis=0).repeat(2, axis=1) for each in parts(12, 5)]
    copy.deepcopy(aimed).calibrate(doubled, progress=heard)
    assert any("12 of 12 images are of another size than 96x96" in each for each in heard.messages)
    with pytest.raises(UserError, match="another aspect ratio"):
        copy.deepcopy(aimed).calibrate([image.resize((192, 96))] * 12)


def test_pictures_grey_what_is_outside(aimed: IGD) -> None:
    image = Image.new("RGB", (SIDE, SIDE), (255, 255, 255))
    outside = aimed.geometry_.outside(SIDE, SIDE)
    quiet = np.zeros((SIDE, SIDE), dtype=np.float32)
    painted = np.asarray(overlay(image, quiet, 0.3, 0.6, outside))
    assert (painted[~outside] == 255).all()
    assert (painted[outside] < 200).all()
    opacity = np.asarray(layer(quiet, 0.3, 0.6, outside))[..., 3]
    assert not opacity[~outside].any()
    assert opacity[outside].all()
    alone = np.asarray(coloured_map(quiet, 0.3, 0.6, outside))
    assert (alone[~outside] == 255).all()
    assert (alone[outside] == 128).all()


def test_evaluation_is_about_the_region(aimed: IGD) -> None:
    good = [Sample(f"good {n}", each) for n, each in enumerate(parts(6, 6))]
    found, beyond = (
        [
            Sample(f"spot {n}", each, "spot", 1, mask=spotted(np.zeros((1, 96, 96)), at, 12)[0] > 0)
            for n, each in enumerate(spotted(parts(4, 7), at, 12))
        ]
        for at in (INSIDE, OUTSIDE)
    )
    heard = Heard()
    metrics = evaluate(aimed, [*good, *found, *beyond], heard).metrics
    assert metrics["n_outside_roi"] == 4
    assert any("4 anomalous images have their defect outside" in each for each in heard.messages)
    alone = evaluate(aimed, [*good, *found]).metrics
    assert alone["n_outside_roi"] == 0
    assert metrics["pixel_auroc_per_image"] == alone["pixel_auroc_per_image"]
    assert metrics["aupro"] == pytest.approx(alone["aupro"], abs=0.02)


def test_audits_keep_the_region_and_grey_their_pictures(aimed: IGD) -> None:
    (first, *_) = audit(parts(10, 8), IGD(image_size=SIDE, **REGION), folds=2)
    assert first.pictures is not None
    plain, coloured = (np.asarray(each.convert("RGB")).astype(int) for each in first.pictures)
    assert (np.abs(coloured - 128)[:, -8:].mean() < np.abs(plain - 128)[:, -8:].mean() * 0.6).all()


def test_commands_train_predict_and_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_images(tmp_path / "good", parts(12, 9))
    mask = Image.new("L", (SIDE, SIDE))
    mask.paste(255, (10, 10, 90, 60))
    mask.save(tmp_path / "mask.png")
    model = tmp_path / "parts.igd"
    command = ["train", str(folder), "-o", str(model), "--image-size", "96"]
    box = ["--roi", str(tmp_path / "mask.png"), "--ignore", "0,0,20,96", "--ignore", "30,20,9,9"]
    assert main([*command, *box]) == 0
    assert main(["info", str(model)]) == 0
    told = capsys.readouterr().out
    assert "region        20,10,70,50 (x,y,width,height) of images of 96x96, 98% of it" in told
    assert main(["info", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roi"]["box"] == [20, 10, 70, 50]
    assert main(["predict", str(model), str(folder), "--out", str(tmp_path / "out")]) == 0
    with Image.open(tmp_path / "out" / "000.png.png") as picture:
        corner = np.asarray(picture)[80:, :].astype(int)
    assert np.abs(corner - 128).max() < 60
    assert main([*command, "--roi", "0,0,200,10"]) == 2
    assert "reaches beyond the images, which are 96x96" in capsys.readouterr().err
