"""The position scale as its users meet it: nothing is trained, and defects it never saw are found
and located.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import edit, spotted, stripes
from PIL import Image

from igd import IGD
from igd.backbones.features import Features
from igd.errors import UserError
from igd.scales.position import PositionScale
from igd.scales.scale_settings import Level, PositionSettings

SIDE = 128


def normal(count: int, seed: int) -> np.ndarray:
    return stripes(count, side=SIDE, seed=seed, colour=True)


@pytest.fixture(scope="module")
def detector() -> IGD:
    return IGD(image_size=SIDE, scales=("position",)).fit(normal(20, seed=0))


@pytest.fixture
def saved(detector: IGD, tmp_path: Path) -> Path:
    detector.save(tmp_path / "position.igd")
    return tmp_path / "position.igd"


CELL = 16  # pixels that one position of a feature map sees the centre of


def peak(anomaly_map: np.ndarray) -> tuple[int, int]:
    row, column = divmod(int(anomaly_map.argmax()), anomaly_map.shape[1])
    return row, column


@pytest.mark.parametrize("at", [(40, 80), (8, 8), (100, 30)])
def test_finds_and_locates_a_square_it_never_saw(detector: IGD, at: tuple[int, int]) -> None:
    anomalous = detector.predict(spotted(normal(4, seed=9), at=at, size=16))
    usual = detector.predict(normal(4, seed=8))
    assert min(each.score for each in anomalous) > max(each.score for each in usual)
    for each in anomalous:
        row, column = peak(each.map)
        assert at[0] - CELL <= row < at[0] + 16 + CELL
        assert at[1] - CELL <= column < at[1] + 16 + CELL


def test_locates_it_in_images_that_are_not_square(detector: IGD) -> None:
    """Twice as wide as high: the peak lies where the square is in the original."""
    for image in spotted(normal(3, seed=9), at=(40, 80), size=16):
        wide = np.asarray(Image.fromarray(image).resize((300, 150)))
        anomaly_map = detector.predict(wide).map
        assert anomaly_map.shape == (150, 300)
        row, column = peak(anomaly_map)
        assert 40 <= row * SIDE / 150 < 56
        assert 80 <= column * SIDE / 300 < 96


def test_alarms_p_values_and_threshold_agree(detector: IGD) -> None:
    alarm = detector.predict(spotted(normal(1, seed=9), at=(40, 80), size=16)[0])
    assert alarm.is_anomalous
    assert alarm.score > detector.threshold_ > 0
    assert alarm.p_value == pytest.approx(1 / (len(detector.calibration_.scores) + 1))
    assert alarm.map.max() > detector.pixel_threshold_
    p_values = [each.p_value for each in detector.predict(normal(10, seed=8))]
    assert np.mean(p_values) > 0.3
    levels = ("shallow", "early", "fine", "late")
    assert alarm.terms.keys() == {f"position.{level}" for level in levels}


def test_scores_and_maps_lie_between_zero_and_one(detector: IGD) -> None:
    extreme = np.random.default_rng(0).integers(0, 256, (2, SIDE, SIDE, 3), dtype=np.uint8)
    for each in [*detector.predict(extreme), *detector.predict(normal(2, seed=8))]:
        assert 0 < each.score < 1
        assert 0 < each.map.min() <= each.map.max() < 1


def test_an_image_scores_the_same_in_any_company(detector: IGD) -> None:
    images = normal(5, seed=8)
    together = detector.score_samples(images)
    alone = [detector.score_samples(image)[0] for image in images]
    np.testing.assert_allclose(together, alone, rtol=1e-4)


def test_what_is_learnt_does_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PositionSettings(levels=(Level("one", (0, 1)), Level("other", (2,))))
    maps = [
        torch.randn(12, 3, 8, 8).half(),
        torch.randn(12, 4, 8, 8).half(),
        torch.randn(12, 5, 4, 4).half(),
    ]
    learnt = []
    for size in (12, 5):
        monkeypatch.setattr("igd.scales.position.AT_ONCE", size)
        scale = PositionScale(settings)
        scale.learn(Features(maps, None), torch.Generator().manual_seed(0))
        learnt.append(scale.tensors())
    for name, value in learnt[0].items():
        torch.testing.assert_close(learnt[1][name], value, rtol=2e-3, atol=1e-3)


def test_saved_and_loaded_predicts_the_same_to_the_last_bit(detector: IGD, saved: Path) -> None:
    images = spotted(normal(4, seed=9))
    for one, other in zip(detector.predict(images), IGD.load(saved).predict(images), strict=True):
        assert (one.score, one.p_value, one.is_anomalous, one.terms) == (
            other.score,
            other.p_value,
            other.is_anomalous,
            other.terms,
        )
        np.testing.assert_array_equal(one.map, other.map)


def test_model_file_tells_nothing_about_places(tmp_path: Path) -> None:
    detector = IGD(
        image_size=64, scales=("global",), steps=1, width=2, feature_cache=tmp_path / "cache"
    )
    with pytest.warns(UserWarning, match="model:"):
        detector.fit(stripes(6, side=64))
    detector.save(tmp_path / "model.igd")
    contents = (tmp_path / "model.igd").read_bytes()
    assert str(tmp_path).encode() not in contents
    assert b"site-packages" not in contents
    # No value of the header starts at the root.
    assert b'"/' not in contents[: int.from_bytes(contents[:8], "little") + 8]


def drop(prefix: str):
    def change(tensors) -> None:
        for name in [each for each in tensors if each.startswith(prefix)]:
            del tensors[name]

    return change


def replace(name: str, made):
    def change(tensors) -> None:
        tensors[name] = made(tensors[name]).contiguous()

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            replace("position/0.mean", lambda value: value.clone().fill_(torch.nan)),
            "it holds values that are not numbers",
        ),
        (
            replace("position/0.whitener", lambda value: value[:, :-1]),
            "a position descriptor of the wrong shape",
        ),
        (
            replace("position/0.whitener", lambda value: value[:-1]),
            "a position descriptor of the wrong shape",
        ),
        (
            replace("position/0.mean", lambda value: value[:, :, :-1]),
            "a position descriptor of the wrong shape",
        ),
        (
            replace("position/1.mean", lambda value: value[:-1]),
            "a position descriptor of the wrong shape",
        ),
        (
            replace("position/0.mean", lambda value: value.double()),
            "its description makes no sense",
        ),
        (drop("position/1.mean"), "its position scale is not complete"),
        (drop("position/1."), "its position scale is not complete"),
        (drop("position/"), "its position scale is not complete"),
        (drop("backbone/stem"), "stem.weight is missing"),
    ],
)
def test_damaged_tensors_are_refused(saved: Path, change, message: str) -> None:
    with pytest.raises(UserError, match=rf"position.igd: .*({message})"):
        IGD.load(edit(saved, change_tensors=change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(backbone=None), "maps that no backbone makes"),
        (lambda header: header["backbone"].update(side=64), "its description makes no sense"),
        (
            lambda header: header["backbone"].update(blocks=[4, 10]),
            "not the weights of",
        ),
        (lambda header: header["scales"][0].update(smoothing=-1), "smoothing is -1"),
    ],
)
def test_a_damaged_header_is_refused(saved: Path, change, message: str) -> None:
    with pytest.raises(UserError, match=rf"position.igd: .*({message})"):
        IGD.load(edit(saved, change))


def test_a_side_of_odd_length_is_not_divided_into_cells(tmp_path: Path) -> None:
    settings = PositionSettings(levels=(Level("one", (0,), cell=2),))
    scale = PositionScale(settings)
    maps = [torch.randn(30, 4, 3, 6, generator=torch.Generator().manual_seed(0)).half()]
    scale.learn(Features(maps, None), torch.Generator())
    (descriptor,) = scale.descriptors
    assert descriptor.cell == (1, 2)
    assert len(descriptor.whitener) == 3 * 3
    loaded = PositionScale(settings)
    loaded.restore(scale.tensors(), tmp_path / "model.igd")
    measured = [each.distances(Features(maps, None).float())[0] for each in (scale, loaded)]
    assert measured[0].shape == (30, 3, 6)
    torch.testing.assert_close(*measured)
    assert measured[0].mean() == pytest.approx(1, abs=0.2)
