"""From images to trained scales: the backbone looks once for all, and scales together make one score."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import spotted, stripes

from igd import IGD
from igd.combination import Unit
from igd.errors import Interrupted, UserError
from igd.learning import see
from igd.modelfile import build_scale
from igd.pixelscale import PixelScale
from igd.pretraining.contrastive import Contrast
from igd.pretraining.distillation import Distillation
from igd.pretraining.features import FrozenBackbone
from igd.pretraining.weights import load_backbone
from igd.progress import Progress
from igd.recipes import RECIPES, find_objective
from igd.scale import Scale

SIDE = 96
IMAGES = stripes(12, side=SIDE, colour=True)
PIXELS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).contiguous()

pytestmark = pytest.mark.filterwarnings("ignore:.*model.*")


@pytest.fixture(scope="module")
def frozen() -> FrozenBackbone:
    return FrozenBackbone(load_backbone("efficientnet_lite0"), 128, (7, 10), vector=True)


def scales_of(frozen: FrozenBackbone) -> list[Scale | PixelScale]:
    return [build_scale(each, find_objective("igd"), SIDE, 3, frozen) for each in RECIPES["fast"].frozen_large]


def test_every_scale_learns_from_one_look(frozen: FrozenBackbone, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    look = FrozenBackbone.__call__
    monkeypatch.setattr(
        FrozenBackbone,
        "__call__",
        lambda self, pixels, remember=True: (looked.append(len(pixels)), look(self, pixels, remember))[1],
    )
    scales = scales_of(frozen)
    features = see(frozen, scales, PIXELS, Progress(), lambda: False)
    assert sum(looked) == len(PIXELS) * (300 // len(PIXELS))  # a small set is seen again, moved, by the pixel scale
    whole = frozen(PIXELS)
    torch.testing.assert_close(features["global"], whole.vector, rtol=1e-4, atol=1e-5)
    assert features["local"].shape == (12 * 2 * 2, frozen.patch_features)  # patches of 64 pixels, 32 apart
    assert len(scales[2].descriptors) == 2


def test_a_memory_serves_every_scale(tmp_path: Path) -> None:
    frozen = FrozenBackbone(load_backbone("efficientnet_lite0"), 128, (7, 10), vector=True)
    frozen.remember_in(tmp_path)
    assert frozen.memory is not None
    learnt, seen, computed = [], [], []
    for _ in range(2):
        scales = scales_of(frozen)
        seen.append(see(frozen, scales, PIXELS, Progress(), lambda: False))
        learnt.append(scales[2].tensors())
        computed.append(frozen.memory.computed)
    assert computed[0] == computed[1] >= len(PIXELS)
    assert frozen.memory.computed + frozen.memory.recalled == 2 * len(PIXELS)  # and no moved copy, which nobody shows again
    for made in (seen, learnt):
        assert made[0].keys() == made[1].keys()
        assert all(torch.equal(value, made[1][name]) for name, value in made[0].items())


def test_stopping_while_it_looks_raises_interrupted(frozen: FrozenBackbone) -> None:
    with pytest.raises(Interrupted, match="stopped"):
        see(frozen, scales_of(frozen), PIXELS, Progress(), lambda: True)


@pytest.fixture(scope="module", params=["calibrated", "sum"])
def detector(request: pytest.FixtureRequest) -> IGD:
    """Three scales together."""
    settings = {"scales": ("global", "local", "pixel"), "image_size": 192, "steps": 2, "width": 2}
    return IGD(**settings, combination=request.param, calibration=0.5).fit(stripes(16, side=192, colour=True))


def test_scales_are_combined_as_asked(detector: IGD) -> None:
    pixels = torch.from_numpy(stripes(3, side=192, seed=8, colour=True)).permute(0, 3, 1, 2)
    looks = detector._looks(pixels)
    score, heat, terms = detector.look(pixels)
    parts = [(value, share) for look in looks for value, share in look.parts]
    if detector.combination == "sum":
        assert detector.units_ is None
        torch.testing.assert_close(score, sum(value * share for value, share in parts) / 3)
        torch.testing.assert_close(heat, sum(look.map for look in looks) / 3)
    else:
        spreads = sum(unit(value) * share for unit, (value, share) in zip(detector.units_, parts, strict=True)) / 3
        excess = (spreads - detector.alarming_) / 3
        torch.testing.assert_close(score, 0.5 + 0.5 * excess / (1 + excess.abs()))
        assert all(isinstance(unit, Unit) and unit.spread > 0 for unit in detector.units_)
        assert len(detector.units_) == len(parts) == 4  # l_r and l_h of whole images, the worst patch, the worst place
    assert terms.keys() == {
        *(f"{name}.{term}" for name in ("global", "local") for term in ("reconstruction", "anomaly")),
        "pixel.distance",
    }


def test_images_that_weigh_the_parts_do_not_calibrate(detector: IGD) -> None:
    """Of the 8 held-out images a quarter has a say in the weights, and none in the promise."""
    assert len(detector.calibration_scores_) == (6 if detector.combination == "calibrated" else 8)


def test_saved_and_loaded_predicts_the_same(detector: IGD, tmp_path: Path) -> None:
    detector.save(tmp_path / "model.igd")
    loaded = IGD.load(tmp_path / "model.igd")
    assert loaded.units_ == detector.units_
    assert loaded.map_units_ == detector.map_units_
    images = spotted(stripes(3, side=192, seed=9, colour=True), at=(40, 40))
    for one, other in zip(detector.predict(images), loaded.predict(images), strict=True):
        assert one.score == other.score
        assert one.terms == other.terms
        np.testing.assert_array_equal(one.map, other.map)


@pytest.mark.parametrize("way", ["distill", "contrastive"])
def test_an_encoder_is_made_on_the_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igd.pretraining.distillation.FAST", Distillation(steps=1, batch_size=2))
    monkeypatch.setattr("igd.pretraining.contrastive.FAST", Contrast(steps=1, batch_size=2))
    detector = IGD(pretrain=way, steps=1, width=2).fit(stripes(8))
    assert detector.provenance_["backbone"] == "resnet18_small"
    assert np.isfinite(detector.score_samples(stripes(2, seed=8))).all()


def test_a_pixel_scale_needs_something_to_look_through() -> None:
    with pytest.raises(UserError, match="no scale is called pixel for images of 96 pixels; there are global, local"):
        IGD(pretrain="scratch", scales=("pixel",), image_size=SIDE).fit(IMAGES)


def test_missing_weights_are_named_before_anything_is_learnt(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none.pth: no such file"):
        IGD(weights=tmp_path / "none.pth").fit(IMAGES)
    with pytest.raises(UserError, match="no backbone is called 'vgg'"):
        IGD(backbone="vgg").fit(IMAGES)
