"""From images to a fitted state: one pass of the backbone for all scales, and one score of them
all.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import spotted, stripes, write_images
from machine import needs_bfloat16

from igd import IGD
from igd.backbones.features import FrozenBackbone
from igd.backbones.weights import load_backbone
from igd.data.sources import as_source
from igd.errors import Interrupted, UserError
from igd.pretraining.contrastive import Contrast
from igd.pretraining.distillation import Distillation
from igd.pretraining.rotation import Rotation
from igd.progress import Progress
from igd.scales.base import Scale
from igd.scales.encoder_statistics import LEAST
from igd.scales.factory import build_scale
from igd.scales.recipes import RECIPES, find_objective
from igd.scales.scale_settings import EmbeddingSettings
from igd.training.checkpoint import Controls
from igd.training.extract import extract_features, features_of_images
from igd.training.make_backbone import make_backbone
from igd.training.parameters import Parameters
from igd.training.plan import HELD_OUT, make_plan

SIDE = 96
ALONE = Controls(Progress(), lambda: False, None)
IMAGES = stripes(12, side=SIDE, colour=True)
PIXELS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).contiguous()

pytestmark = pytest.mark.filterwarnings("ignore:.*model.*")


@pytest.fixture(scope="module")
def frozen() -> FrozenBackbone:
    return FrozenBackbone(
        load_backbone("efficientnet_lite0"), (128, 128), (4, 7, 10, 14), vector=True
    )


def scales_of(frozen: FrozenBackbone) -> list[Scale]:
    return [
        build_scale(each, find_objective("igd"), SIDE, 3, frozen)
        for each in RECIPES["fast"].frozen_large
    ]


def test_every_scale_reads_one_pass(
    frozen: FrozenBackbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []
    call = FrozenBackbone.__call__
    monkeypatch.setattr(
        FrozenBackbone,
        "__call__",
        lambda self, pixels: (shown.append(len(pixels)), call(self, pixels))[1],
    )
    scales = scales_of(frozen)
    features = extract_features(frozen, scales, PIXELS, ALONE)
    assert sum(shown) == len(PIXELS)
    whole = frozen(PIXELS)
    torch.testing.assert_close(features["global"], whole.vector, rtol=1e-4, atol=1e-5)
    patches = 2 * 2  # of 64 pixels, 32 apart
    assert features["local"].shape == (12 * patches, frozen.patch_features)
    for level, expected in zip(features_of_images(features).maps, whole.maps, strict=True):
        torch.testing.assert_close(level, expected.half(), rtol=1e-2, atol=1e-3)


def test_a_cache_serves_every_scale(tmp_path: Path) -> None:
    frozen = FrozenBackbone(
        load_backbone("efficientnet_lite0"), (128, 128), (4, 7, 10, 14), vector=True
    )
    frozen.cache_in(tmp_path)
    assert frozen.cache is not None
    features, computed = [], []
    for _ in range(2):
        scales = scales_of(frozen)
        features.append(extract_features(frozen, scales, PIXELS, ALONE))
        computed.append(frozen.cache.computed)
    assert computed[0] == computed[1] >= len(PIXELS)
    assert frozen.cache.computed + frozen.cache.recalled == 2 * len(PIXELS)
    assert features[0].keys() == features[1].keys()
    assert all(torch.equal(value, features[1][name]) for name, value in features[0].items())


def test_stopping_while_it_extracts_raises_interrupted(frozen: FrozenBackbone) -> None:
    with pytest.raises(Interrupted, match="stopped"):
        extract_features(frozen, scales_of(frozen), PIXELS, ALONE._replace(stop=lambda: True))


@pytest.fixture(scope="module", params=["calibrated", "sum"])
def detector(request: pytest.FixtureRequest) -> IGD:
    """Scales together; those of closed forms have no bound, and no plain sum."""
    closed = ("position",) if request.param == "calibrated" else ()
    settings = {
        "scales": ("global", "local", *closed),
        "image_size": 192,
        "steps": 2,
        "width": 2,
    }
    return IGD(**settings, combination=request.param, calibration=0.5).fit(
        stripes(16, side=192, colour=True)
    )


def test_scales_are_combined_as_asked(detector: IGD) -> None:
    pixels = torch.from_numpy(stripes(3, side=192, seed=8, colour=True)).permute(0, 3, 1, 2)
    fitted = detector.fitted_
    features = fitted.features(pixels)
    outputs = [scale.score(pixels, features) for scale in fitted.scales]
    score, anomaly_map, terms = fitted.score(pixels)
    parts = [part for output in outputs for part in output.parts]
    weights = [weight for output in outputs for weight in output.weights]
    if detector.combination == "sum":
        assert fitted.fusion.scalers is None
        scores = [
            sum(part * weight for part, weight in zip(each.parts, each.weights, strict=True))
            / sum(each.weights)
            for each in outputs
        ]
        torch.testing.assert_close(score, sum(scores) / 2)
        maps = [each for output in outputs for each in output.maps]
        map_weights = [weight for output in outputs for weight in output.map_weights]
        weighted_maps = sum(each * weight for each, weight in zip(maps, map_weights, strict=True))
        weights_of_maps = sum(map_weights)
        torch.testing.assert_close(anomaly_map, weighted_maps / weights_of_maps)
    else:
        scalers = fitted.fusion.scalers
        # l_r and l_h of whole images, the worst patch, the worst positions of four levels
        assert len(scalers) == len(parts) == 7
        assert all(scaler.mad > 0 for scaler in scalers)
        deviations = [scaler(part) for scaler, part in zip(scalers, parts, strict=True)]
        shares = [weight / 3 for weight in weights[:3]] + [1 / 12] * 4
        deviation = sum(each * share for each, share in zip(deviations, shares, strict=True))
        excess = (deviation - fitted.fusion.threshold) / 3
        torch.testing.assert_close(score, 0.5 + 0.5 * excess / (1 + excess.abs()))
    assert terms.keys() == {
        *(
            f"{name}.{term}"
            for name in ("global", "local")
            for term in ("reconstruction", "anomaly")
        ),
        *(
            f"position.{level}"
            for level in ("shallow", "early", "fine", "late")
            if detector.combination == "calibrated"
        ),
    }


def test_images_that_scale_the_parts_do_not_calibrate(detector: IGD) -> None:
    """Of the 8 held-out images a quarter has a say in the weights, and none in the promise."""
    assert len(detector.calibration_.scores) == (6 if detector.combination == "calibrated" else 8)


def test_saved_and_loaded_predicts_the_same(detector: IGD, tmp_path: Path) -> None:
    detector.save(tmp_path / "model.igd")
    loaded = IGD.load(tmp_path / "model.igd")
    assert loaded.fitted_.fusion == detector.fitted_.fusion
    images = spotted(stripes(3, side=192, seed=9, colour=True), at=(40, 40))
    for one, other in zip(detector.predict(images), loaded.predict(images), strict=True):
        assert one.score == other.score
        assert one.terms == other.terms
        np.testing.assert_array_equal(one.map, other.map)


@pytest.mark.parametrize("way", ["distill", "contrastive", "rotation"])
def test_an_encoder_is_made_on_the_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igd.pretraining.distillation.FAST", Distillation(steps=1, batch_size=2))
    monkeypatch.setattr("igd.pretraining.contrastive.FAST", Contrast(steps=1, batch_size=2))
    monkeypatch.setattr("igd.pretraining.rotation.FAST", Rotation(steps=1, batch_size=2))
    detector = IGD(pretrain=way, scales=("global",), steps=1, width=2).fit(stripes(8))
    assert detector.provenance_["backbone"] == "resnet18_small"
    assert np.isfinite(detector.score_samples(stripes(2, seed=8))).all()


def test_a_position_scale_needs_a_backbone() -> None:
    with pytest.raises(
        UserError,
        match="no scale is called position for images of 96 pixels; there are global, local",
    ):
        IGD(pretrain="scratch", scales=("pixel",), image_size=SIDE).fit(IMAGES)


def test_missing_weights_are_named_before_anything_is_learnt(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none.pth: no such file"):
        IGD(weights=tmp_path / "none.pth").fit(IMAGES)
    with pytest.raises(UserError, match="no backbone is called 'vgg'"):
        IGD(backbone="vgg").fit(IMAGES)


def test_every_image_is_learnt_from_and_calibrates() -> None:
    detector = IGD(image_size=SIDE).fit(IMAGES)
    assert detector.provenance_["images"] == detector.provenance_["calibration_images"] == 12
    assert detector.provenance_["calibration"] == "cross-fitted"
    assert [scale.settings.name for scale in detector.fitted_.scales] == [
        "position",
        "bank",
        "whole",
    ]


def test_a_share_is_held_out_where_it_is_asked_for() -> None:
    detector = IGD(image_size=SIDE, calibration=0.5).fit(IMAGES)
    assert detector.provenance_["calibration"] == "held out"
    assert detector.provenance_["images"] == 6


def test_what_is_not_the_product_is_an_alarm() -> None:
    """Blank, black, other things, blur: nothing that a scale may divide away."""
    normal = stripes(40, side=128, colour=True)
    detector = IGD(image_size=128).fit(normal)
    assert (
        np.mean([each.is_anomalous for each in detector.predict(stripes(20, 128, 8, colour=True))])
        < 0.3
    )
    white, black = np.full_like(normal[0], 255), np.zeros_like(normal[0])
    noise = np.random.default_rng(0).integers(0, 256, normal[0].shape, dtype=np.uint8)
    turned, flat = (
        np.rot90(normal[0]).copy(),
        np.broadcast_to(normal[0].mean(axis=1, keepdims=True), normal[0].shape).astype(np.uint8),
    )
    for name, image in {
        "white": white,
        "black": black,
        "noise": noise,
        "turned": turned,
        "flat": flat,
    }.items():
        assert detector.predict(image).is_anomalous, name


def test_the_first_fold_can_be_looked_at_before_the_others(tmp_path: Path) -> None:
    """Its model, of the images that it did not learn from, says what it was calibrated with."""
    told: list[tuple[str, object]] = []

    class Watching(Progress):
        def advance(self, count: int = 1, **figures: float) -> None:
            told.append(("advance", figures))

        def start(self, total: int, doing: str, done: int = 0) -> None:
            told.append((doing, total))

        def preview(self, make) -> None:
            told.append(("preview", make()))

    files = sorted(write_images(tmp_path, IMAGES).iterdir())
    whole = IGD().fit(files, progress=Watching())
    steps = [step for step, _ in told]
    assert steps.count("preview") == 1
    assert steps[steps.index("cross-fitting") + 1] == "preview"  # no fold is counted before it
    (state, names) = dict(told)["preview"]
    assert set(names) < {str(each) for each in files}
    first = IGD()
    first.fitted_ = state
    scores = [first.predict(name).score for name in names]
    assert scores == sorted(scores, reverse=True)
    assert np.allclose(scores, np.sort(state.calibration.scores)[::-1], atol=0.01)
    assert np.array_equal(whole.calibration_.scores, IGD().fit(files).calibration_.scores)


@pytest.mark.parametrize(
    ("parameters", "side", "maps"),
    [({}, 128, 5), ({"scales": ("bank",)}, 128, 3), ({"tile": 128}, 256, 4), ({}, 32, 3)],
    ids=["default", "bank alone", "tiles", "small images"],
)
def test_a_map_that_nobody_reads_is_not_made(
    parameters: dict[str, Any], side: int, maps: int
) -> None:
    """The largest map is the shallow level's, which tiles and small images do without."""
    plan = make_plan(Parameters(**parameters), as_source(np.zeros((4, side, side, 3), np.uint8)))
    backbone = make_backbone(plan, PIXELS, None, ALONE)
    assert backbone is not None
    assert len(backbone.blocks) == maps


@pytest.mark.filterwarnings("ignore:.*model.*")
def test_few_images_do_not_make_statistics_count_by_chance() -> None:
    """Of ten images two are held out, and one of them scales the parts."""
    detector = IGD(pretrain="scratch", steps=2, width=2).fit(stripes(10))
    scalers = detector.fitted_.fusion.scalers
    assert scalers is not None
    assert [each.mad for each in scalers[2:]] == [*LEAST.values()]


@pytest.mark.filterwarnings("ignore:.*model.*")
@pytest.mark.parametrize(
    ("settings", "statistics"),
    [
        ({}, True),
        ({"objective": "dsvdd+rec"}, True),
        ({"objective": "rec"}, False),
        ({"combination": "sum"}, False),
        ({"pretrain": "imagenet", "scales": ("global",)}, False),
    ],
)
def test_settings_say_whether_statistics_count(settings, statistics: bool) -> None:
    quick = {"pretrain": "scratch", "steps": 2, "width": 2, **settings}
    (scale,) = IGD(**quick).fit(stripes(10)).fitted_.scales
    assert scale.settings.statistics == statistics
    assert (scale.statistics is not None) == statistics


@needs_bfloat16
def test_an_encoder_that_learns_turns_learns_in_the_precision_asked_for_and_they_count() -> None:
    given = Parameters(pretrain="rotation", precision="bf16-mixed", seed=3)
    plan = make_plan(given, as_source(np.zeros((4, 32, 32, 3), np.uint8)))
    assert plan.origin is not None
    assert isinstance(plan.origin.learning, Rotation)
    assert (plan.origin.learning.precision, plan.origin.learning.seed) == ("bf16-mixed", 3)
    assert [each.turns for each in plan.settings if isinstance(each, EmbeddingSettings)] == [True]


@pytest.mark.parametrize("pretrain", ["rotation", "contrastive", "distill", "imagenet"])
def test_what_an_encoder_learnt_from_calibrates_nothing(pretrain: str) -> None:
    """Scales are cross-fitted; an encoder would have learnt from every fold."""
    source = as_source(np.zeros((40, 32, 32, 3), np.uint8))
    held_out = make_plan(Parameters(pretrain=pretrain), source).held_out
    assert held_out == (None if pretrain == "imagenet" else HELD_OUT)
