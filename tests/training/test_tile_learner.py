"""Large images in tiles: small defects are found, and the promise is about images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from igd import IGD
from igd.cli import main
from igd.data.demo import photograph_of_bricks
from igd.errors import UserError
from igd.inference.predictor import Prediction
from igd.scales.recipes import RECIPES, TILED_LEVELS
from igd.scales.scale_settings import PositionSettings
from igd.training.parameters import Parameters
from igd.training.plan import choose_scales
from igd.training.split import MOST_IN_TILES, Split, bounded
from igd.training.tile_learner import position_matters

WIDTH, HEIGHT, TILE = 512, 384, 128
IMAGES = 19  # the fewest that promise 5 %
BRICKS = photograph_of_bricks().astype(np.float64)

pytestmark = pytest.mark.xdist_group("tiles")


def walls(count: int, seed: int, fixed: bool = False) -> list[np.ndarray]:
    """Bricks from anywhere on the wall or, photographed from a fixed place, always the same."""
    rng = np.random.default_rng(seed)
    shifts = [rng.integers(0, 2 if fixed else 512, 2) for _ in range(count)]
    lit = [np.roll(BRICKS, shift, (0, 1))[:HEIGHT] * rng.uniform(0.95, 1.05) for shift in shifts]
    noisy = [each + rng.normal(0, 2, each.shape) for each in lit]
    return [each.clip(0, 255).astype(np.uint8) for each in noisy]


def scratched(image: np.ndarray, at: tuple[int, int]) -> np.ndarray:
    """With a scratch two pixels wide that begins at (x, y)."""
    drawn = Image.fromarray(image)
    ImageDraw.Draw(drawn).line([at, (at[0] + 40, at[1] + 28)], fill=240, width=2)
    return np.asarray(drawn)


def listed(detector: IGD, images: list[np.ndarray]) -> list[Prediction]:
    predicted = detector.predict(images)
    assert isinstance(predicted, list)
    return predicted


@pytest.fixture(scope="module")
def detector() -> IGD:
    return IGD(tile=TILE).fit(walls(IMAGES, seed=0))


@pytest.fixture(scope="module")
def saved(detector: IGD, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiles") / "wall.igd"
    detector.save(path)
    return path


def test_scratches_of_two_pixels_are_found_where_they_are(detector: IGD) -> None:
    places = [(60, 60), (300, 200), (440, 320), (108, 110), (230, 50), (20, 340)]
    images = [scratched(image, at) for image, at in zip(walls(6, seed=1), places, strict=True)]
    for prediction, (x, y) in zip(listed(detector, images), places, strict=True):
        assert prediction.is_anomalous
        row, column = np.unravel_index(prediction.map.argmax(), prediction.map.shape)
        assert x - 16 <= column <= x + 56
        assert y - 16 <= row <= y + 44


def test_the_promise_is_about_images(detector: IGD) -> None:
    assert len(detector.calibration_.scores) == IMAGES
    assert sum(each.is_anomalous for each in listed(detector, walls(12, seed=2))) <= 3


def test_position_has_no_meaning_on_a_web(detector: IGD) -> None:
    assert detector.tiling_.size is None
    (other,) = listed(detector, [np.hstack([walls(1, seed=3)[0]] * 2)[:, : WIDTH + 200]])
    assert other.map.shape == (HEIGHT, WIDTH + 200)
    with pytest.raises(UserError, match="no room for a tile of 128"):
        detector.predict(walls(1, seed=3)[0][:100])


def test_one_scale_alone_learns_from_tiles() -> None:
    """The fine features that tell whether position matters are not made for `grain`."""
    wall = walls(IMAGES, seed=0)
    alone = IGD(tile=TILE, scales=("grain",)).fit(wall)
    assert alone.predict(scratched(wall[0], (200, 100))).score > alone.predict(wall[0]).score


def test_tiles_change_levels_and_nothing_else() -> None:
    chosen = PositionSettings(ridge=0.5, top=7, smoothing=9.0)
    recipe = replace(RECIPES["fast"], frozen_large=(chosen,))
    parameters = Parameters(tile=TILE, recipe=recipe)
    assert choose_scales(parameters, recipe, TILE) == [replace(chosen, levels=TILED_LEVELS)]


def test_the_score_is_that_of_the_worst_tile(detector: IGD) -> None:
    image = walls(1, seed=4)[0]
    (prediction,) = listed(detector, [image])
    shown = Image.fromarray(image)
    scores = [detector.score_batch(*each).score for each in detector.model_inputs("", shown)]
    assert prediction.score == pytest.approx(float(np.concatenate(scores).max()), abs=1e-5)
    assert set(prediction.terms) >= {"position.fine", "bank.nearest", "grain.nearest"}


def test_maps_have_no_seams(detector: IGD) -> None:
    """Where tiles meet, maps of normal images change no faster than elsewhere."""
    starts = {left for left, *_ in detector.tiling_.boxes(WIDTH, HEIGHT)}
    edges = np.array(sorted({*starts, *(start + TILE for start in starts)} - {0, WIDTH}))
    steps = np.mean(
        [np.abs(np.diff(each.map, axis=1)).mean(axis=0) for each in listed(detector, walls(6, 5))],
        axis=0,
    )
    assert steps[edges - 1].mean() < 2 * steps.mean()


def test_a_model_in_a_file_scores_the_same(detector: IGD, saved: Path) -> None:
    image = scratched(walls(1, seed=6)[0], (200, 200))
    ours, theirs = listed(detector, [image])[0], listed(IGD.load(saved), [image])[0]
    assert theirs.score == ours.score
    np.testing.assert_array_equal(theirs.map, ours.map)


def test_info_tells_of_tiles(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(saved)]) == 0
    assert "tiles of 128x128 pixels, grey, 6.2% overlap, one descriptor" in capsys.readouterr().out


def test_new_light_is_calibrated_on_whole_images(saved: Path) -> None:
    darker = [(0.8 * image).astype(np.uint8) for image in walls(26, seed=7)]
    renewed = IGD.load(saved).calibrate(darker)
    assert renewed.provenance_["calibration_images"] == len(renewed.calibration_.scores) == 20
    assert not any(each.is_anomalous for each in listed(renewed, darker[:4]))
    assert listed(renewed, [scratched(darker[0], (250, 100))])[0].is_anomalous


def test_places_have_their_own_where_position_has_a_meaning(tmp_path: Path) -> None:
    detector = IGD(tile=192, scales=("position",)).fit(walls(8, seed=8, fixed=True))
    assert detector.tiling_.size == (WIDTH, HEIGHT)
    good = walls(1, seed=9, fixed=True)[0]
    swapped = good.copy()  # bricks where other bricks should be
    swapped[100:180, 100:180] = good[200:280, 300:380]
    normal, anomalous = listed(detector, [good, swapped])
    assert anomalous.score > max(0.5, normal.score)
    row, column = np.unravel_index(anomalous.map.argmax(), anomalous.map.shape)
    assert 90 <= row <= 190
    assert 90 <= column <= 190
    with pytest.raises(UserError, match="has 384x384 pixels"):
        detector.predict(good[:, :384])
    detector.save(tmp_path / "own.igd")
    loaded = IGD.load(tmp_path / "own.igd")
    assert listed(loaded, [swapped])[0].score == anomalous.score


def test_whether_position_has_a_meaning() -> None:
    rng = torch.Generator().manual_seed(0)
    places = torch.arange(6).repeat(10)
    noise = torch.rand(60, 8, 4, 4, generator=rng)
    assert not position_matters(places, noise)
    assert position_matters(places, noise + 3 * torch.rand(6, 8, 4, 4, generator=rng)[places])
    assert not position_matters(torch.arange(60), noise)


def test_no_more_images_are_scored_than_time_allows() -> None:
    many = torch.arange(5000)
    split = bounded(Split(many, many, many), rate=None)
    assert len(split.calibration) == MOST_IN_TILES
    assert len(split.training) == 5000
    assert len(bounded(Split(many, many, many), rate=0.001).calibration) == 2000
    few = torch.arange(7)
    assert bounded(Split(few, few, few), rate=None).calibration.tolist() == few.tolist()


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"overlap": 0.2}, "overlap=0.2 has no effect"),
        ({"tile_descriptors": "own"}, "tile_descriptors='own' has no effect"),
        ({"tile": 64}, "between 96 and"),
        ({"tile": 128, "overlap": 0.7}, "between 0 and 0.5"),
        ({"tile": 128, "fit_to": "crop"}, "tiles are squares already"),
        ({"tile": 128, "scales": ("local", "bank")}, "can't be scored by local, trained on"),
        ({"tile": 128, "combination": "sum"}, "no plain sum"),
        ({"tile": 512}, "no room for a tile of 512"),
    ],
)
def test_what_does_not_go_with_tiles_is_refused(parameters: dict[str, object], said: str) -> None:
    assert {*parameters} <= {*Parameters.__dataclass_fields__}
    with pytest.raises(UserError, match=said):
        IGD(**parameters).fit(walls(3, seed=0))
