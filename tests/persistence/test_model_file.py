"""The .igd file: what goes in comes out, and nothing else gets in."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import edit, stripes
from safetensors import safe_open
from safetensors.torch import save_file

from igd import IGD
from igd.backbones.features import FrozenBackbone
from igd.backbones.weights import load_backbone
from igd.errors import UserError
from igd.persistence.backbone_header import backbone_header, read_backbone


@pytest.fixture
def saved(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "stripes.igd")
    return tmp_path / "stripes.igd"


def test_saved_and_loaded_equals_the_original(fitted: IGD, saved: Path) -> None:
    loaded = IGD.load(saved)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.provenance_ == fitted.provenance_
    assert loaded.threshold_ == fitted.threshold_
    assert loaded.pixel_threshold_ == fitted.pixel_threshold_
    for one, other in zip(
        fitted.predict(stripes(20, seed=8)), loaded.predict(stripes(20, seed=8)), strict=True
    ):
        assert one.score == other.score
        assert one.p_value == other.p_value
        assert one.terms == other.terms
        np.testing.assert_array_equal(one.map, other.map)


@pytest.mark.filterwarnings("ignore:.*model.*")
def test_scales_that_read_no_map_are_loaded_too(tmp_path: Path) -> None:
    images = stripes(24)
    detector = IGD(scales=("global", "embedding"), steps=2, width=4).fit(images)
    detector.save(tmp_path / "vectors.igd")
    loaded = IGD.load(tmp_path / "vectors.igd")
    assert loaded.predict(images[0]).score == detector.predict(images[0]).score


@pytest.mark.filterwarnings("ignore:.*model.*")
@pytest.mark.parametrize(
    "settings", [{"image_size": 96}, {"scales": ("global", "embedding"), "steps": 2, "width": 4}]
)
def test_what_is_loaded_lies_in_memory_as_what_was_learnt(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    # Products of matrices in another order, or that begin elsewhere, may end in another last digit.
    detector = IGD(**settings).fit(stripes(24, side=settings.get("image_size", 32)))
    detector.save(tmp_path / "laid.igd")
    learnt, loaded = (each.fitted_ for each in (detector, IGD.load(tmp_path / "laid.igd")))
    for one, other in zip(learnt.scales, loaded.scales, strict=True):
        tensors = other.tensors()
        for name, value in one.tensors().items():
            assert value.stride() == tensors[name].stride(), name
            assert tensors[name].data_ptr() % 64 == value.data_ptr() % 64 == 0, name
    parameters = loaded.backbone.parameters()
    for name, value in learnt.backbone.parameters().items():
        assert value.stride() == parameters[name].stride(), name


@pytest.mark.filterwarnings("ignore:.*model.*")
def test_statistics_of_an_encoder_are_loaded_and_a_file_without_them_scores_by_l_h(
    tmp_path: Path,
) -> None:
    path, images = tmp_path / "scratch.igd", stripes(24)
    quick = {"pretrain": "scratch", "steps": 2, "width": 2}
    detector = IGD(**quick).fit(images)
    detector.save(path)
    one, other = (each.predict(images[0]) for each in (detector, IGD.load(path)))
    assert (one.score, one.terms) == (other.score, other.terms)
    assert {"global.statistics", "global.detail"} <= one.terms.keys()

    former = IGD(**quick, combination="sum").fit(images)
    former.save(path)
    by_l_h = former.predict(images[0])
    assert by_l_h.terms.keys() == {"global.reconstruction", "global.anomaly"}
    before = edit(
        path, lambda header: (header.update(format=7), header["scales"][0].pop("statistics"))
    )
    assert IGD.load(before).predict(images[0]).score == by_l_h.score


def test_what_has_learnt_is_frozen(fitted: IGD, saved: Path) -> None:
    for detector in (fitted, IGD.load(saved)):
        weights = [
            weight for scale in detector.fitted_.scales for weight in scale.autoencoder.parameters()
        ]
        assert weights
        assert not any(weight.requires_grad for weight in weights)


def test_saving_twice_gives_the_same_bytes(fitted: IGD, saved: Path) -> None:
    first = saved.read_bytes()
    IGD.load(saved).save(saved)
    assert saved.read_bytes() == first


def test_large_models_too(fitted_large: IGD, tmp_path: Path) -> None:
    fitted_large.save(tmp_path / "large.igd")
    image = stripes(1, side=192, seed=8, colour=True)[0]
    assert (
        IGD.load(tmp_path / "large.igd").predict(image).score == fitted_large.predict(image).score
    )


def test_file_says_what_made_it(saved: Path) -> None:
    with safe_open(saved, framework="pt") as opened:
        header = json.loads(opened.metadata()["igd"])
    assert header["format"] == 9
    assert header["parameters"]["recipe"] == "fast"
    assert header["scales"][0]["training"]["seed"] == 1
    assert {"made_by", "made_at", "torch", "images", "fingerprint"} <= header["provenance"].keys()
    assert header["provenance"]["threads"] >= 1


def test_not_there_not_one_truncated(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        IGD.load(tmp_path / "none.igd")
    (tmp_path / "text.igd").write_text("hello")
    whole = saved.read_bytes()
    (tmp_path / "short.igd").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "head.igd").write_bytes(whole[:20])
    (tmp_path / "empty.igd").touch()
    save_file({"a": torch.zeros(1)}, tmp_path / "other.igd")
    for name in ("text", "short", "head", "empty", "other"):
        with pytest.raises(UserError, match=f"{name}.igd: not an igd model, or damaged"):
            IGD.load(tmp_path / f"{name}.igd")


def test_newer_and_other_kinds(saved: Path) -> None:
    with pytest.raises(UserError, match=r"made by a newer igd \(igd .*upgrade"):
        IGD.load(edit(saved, lambda header: header.update(format=99)))
    with pytest.raises(UserError, match="is an igd checkpoint, not an igd model"):
        IGD.load(edit(saved, lambda header: header.update(format=2, kind="checkpoint")))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("scales"),
        lambda header: header.update(scales=[]),
        lambda header: header.update(channels=7),
        lambda header: header["calibration"].update(false_alarm_rate=0),
        lambda header: header["calibration"].update(false_alarm_rate="all"),
        lambda header: header["geometry"].update(side=10**9),
        lambda header: header["geometry"].update(side=48),
        lambda header: header["geometry"].update(fit="../../etc"),
        lambda header: header["scales"][0].update(width=10**6),
        lambda header: header["scales"][0].update(width="wide"),
        lambda header: header["scales"][0].update(latent_size=64),
        lambda header: header["scales"][0].update(name="../global"),
        lambda header: header["scales"][0].update(surprise=1),
        lambda header: header["scales"][0].update(stride=0),
        lambda header: header["scales"][0].update(smoothing="x"),
        lambda header: header["scales"][0].update(statistics=True),
        lambda header: header["scales"][0].update(statistics=1),
        lambda header: header["calibration"].update(background_level=float("nan")),
        lambda header: header["fusion"].update(threshold=float("inf")),
        lambda header: header["fusion"].update(scalers=None, sharpness=9.0),
        lambda header: header.update(scales=1000 * header["scales"]),
        lambda header: header["provenance"].pop("made_by"),
        lambda header: header["objective"].update(surprise=1),
    ],
)
def test_a_header_that_does_not_fit_is_refused(saved: Path, change) -> None:
    with pytest.raises(UserError, match="damaged"):
        IGD.load(edit(saved, change))


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("global/mean"),
        lambda tensors: tensors.pop("global/weights.encoder.linear.weight"),
        lambda tensors: tensors.update({"global/weights.extra": torch.zeros(1)}),
        lambda tensors: tensors.update({"global/mean": torch.zeros(3)}),
        lambda tensors: tensors.update(
            {name: value.double() for name, value in tensors.items() if "weights" in name}
        ),
        lambda tensors: tensors["global/mean"].fill_(float("nan")),
        lambda tensors: tensors.update({"calibration.scores": torch.zeros(0)}),
    ],
)
def test_tensors_that_do_not_fit_are_refused(saved: Path, change) -> None:
    with pytest.raises(UserError, match="damaged"):
        IGD.load(edit(saved, change_tensors=change))


def test_one_flipped_bit_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 60):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(place) % 8
        saved.write_bytes(damaged)
        with pytest.raises(UserError, match=r"damaged|newer"):
            IGD.load(saved)


def test_a_loaded_model_no_longer_needs_its_file(saved: Path) -> None:
    """A mapped file would change what is in memory, or end the process, when somebody copies over
    it.
    """
    loaded = IGD.load(saved)
    before = loaded.predict(stripes(2, seed=8))
    with saved.open("r+b") as file:
        file.truncate(100)
    assert [each.score for each in loaded.predict(stripes(2, seed=8))] == [
        each.score for each in before
    ]


def test_an_example_that_scores_otherwise_is_noticed(saved: Path) -> None:
    with pytest.raises(UserError, match="an image that it came with scores"):
        IGD.load(
            edit(saved, change_tensors=lambda tensors: tensors["calibration.examples"].zero_())
        )


def test_whose_weights_a_file_holds(tmp_path: Path) -> None:
    frozen = FrozenBackbone(load_backbone("efficientnet_lite0"), (160, 160), (4,), vector=False)
    described = json.loads(json.dumps(backbone_header(frozen)))
    assert described["attribution"]["licence"] == "Apache-2.0"
    assert "ML Illustrated" in described["attribution"]["work"]
    read = read_backbone(described, (128, 128), dict(frozen.parameters()), tmp_path / "model.igd")
    assert read.backbone.attribution == frozen.backbone.attribution
    del described["attribution"]  # of files made before
    read = read_backbone(described, (128, 128), dict(frozen.parameters()), tmp_path / "model.igd")
    assert read.backbone.attribution is None
    with pytest.raises(ValueError, match="shown images of shape"):
        read_backbone(
            {**described, "shape": [4096, 160]}, (128, 128), dict(frozen.parameters()), tmp_path
        )
