"""A detector that aligns: a good part that is shifted or turned is no alarm, and a defect on it is
found where it lies.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import write_images
from PIL import Image
from scipy.ndimage import gaussian_filter

from igd import IGD
from igd.cli import main
from igd.data.alignment import Pose, aligned
from igd.errors import UserError

SIDE = 96

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*model.*"),
    pytest.mark.xdist_group("aligned parts"),
]


def parts(count: int, seed: int) -> np.ndarray:
    """A dark plate with a notch, on a light ground, laid there by hand and a little out of
    focus.
    """
    rng = np.random.default_rng(seed)
    images = np.full((count, SIDE, SIDE, 3), 200.0)
    images[:, 30:66, 20:76] = rng.uniform(55, 65, (count, 1, 1, 1))
    images[:, 30:48, 60:76] = 200
    noisy = gaussian_filter(images + rng.normal(0, 12, images.shape), (0, 1.5, 1.5, 0))
    laid = [Pose(*rng.uniform(-1, 1, 2), angle=rng.uniform(-1, 1)) for _ in images]
    return np.stack(
        [
            np.asarray(aligned(Image.fromarray(each), pose))
            for each, pose in zip(noisy.clip(0, 255).astype(np.uint8), laid, strict=True)
        ]
    )


def moved(images: np.ndarray, pose: Pose) -> list[np.ndarray]:
    return [np.asarray(aligned(Image.fromarray(each), pose)) for each in images]


def scratched(images: np.ndarray) -> np.ndarray:
    images = images.copy()
    images[:, 50:60, 28:40] = (250, 240, 20)
    return images


@pytest.fixture(scope="module")
def plain() -> IGD:
    return IGD(image_size=SIDE).fit(parts(24, 0))


@pytest.fixture(scope="module")
def aligning() -> IGD:
    return IGD(image_size=SIDE, align=True).fit(parts(24, 0))


# As `aligned` brings back from a pose, the part moves the other way.
@pytest.mark.parametrize("pose", [Pose(-4, 3), Pose(3, -4, 2), Pose(0, 0, -4)])
def test_good_parts_may_move(plain: IGD, aligning: IGD, pose: Pose) -> None:
    images = moved(parts(10, 1), pose)
    without, with_it = (
        np.mean([each.is_anomalous for each in detector.predict(images)])
        for detector in (plain, aligning)
    )
    assert without >= 0.8
    assert with_it <= 0.3
    found = np.median([each.pose for each in aligning.predict(images)], axis=0)
    assert np.abs(found + pose).max() < 1.5
    assert plain.predict(images)[0].pose is None


def test_a_defect_is_found_where_it_lies(aligning: IGD) -> None:
    for each in aligning.predict(moved(scratched(parts(3, 2)), Pose(-4, 3))):
        assert each.is_anomalous
        row, column = np.unravel_index(int(each.map.argmax()), each.map.shape)
        assert abs(row - (55 - 3)) < 9
        assert abs(column - (34 + 4)) < 9


def test_it_is_saved_and_told(aligning: IGD, tmp_path: Path, capsys) -> None:
    aligning.save(tmp_path / "parts.igd")
    loaded = IGD.load(tmp_path / "parts.igd")
    assert loaded.align
    assert loaded.geometry_ == aligning.geometry_
    images = moved(parts(2, 3), Pose(-4, 3))
    assert [each.score for each in loaded.predict(images)] == pytest.approx(
        [each.score for each in aligning.predict(images)], abs=1e-6
    )
    folder = write_images(tmp_path / "new", np.stack(images))
    (folder / "broken.png").write_bytes(b"nothing")
    out = tmp_path / "out"
    command = ["predict", str(tmp_path / "parts.igd"), str(folder), "--skip-unreadable"]
    assert main([*command, "--out", str(out)]) == 0
    with (out / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    poses = [json.loads(row["alignment"]) for row in rows if not row["error"]]
    assert len(poses) == 2
    assert all(abs(each["x"] - 4) < 2.5 and abs(each["y"] + 3) < 2.5 for each in poses)
    assert main([*command, "--out", str(out), "--resume"]) == 0
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["alignment"] is None for line in lines] == [False, False, True]
    assert main(["info", str(tmp_path / "parts.igd")]) == 0
    assert "aligns        each part to its usual place" in capsys.readouterr().out


def test_what_has_no_layout_is_not_aligned() -> None:
    with pytest.raises(UserError, match="align has no effect: the images have no layout"):
        IGD(image_size=SIDE, align=True).fit(
            np.random.default_rng(0).integers(0, 256, (20, SIDE, SIDE, 3), dtype=np.uint8)
        )


def test_the_region_moves_with_the_part() -> None:
    detector = IGD(image_size=SIDE, align=True, roi="12,22,72,52").fit(parts(12, 0))
    (image,) = moved(parts(1, 4), Pose(-6, 0))
    prediction = detector.predict(image)
    outside = detector.geometry_.outside(SIDE, SIDE, prediction.pose)
    assert outside is not None
    columns = np.flatnonzero(~outside[48])
    assert abs(columns[0] - 18) <= 3
    assert abs(columns[-1] - 89) <= 3
    assert not prediction.map[outside].any()
