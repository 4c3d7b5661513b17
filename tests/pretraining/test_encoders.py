"""Encoders as files: what goes in comes out, and a detector looks through it."""

from pathlib import Path

import pytest
import torch
from conftest import edit, stripes

from igd import IGD
from igd.backbones.architectures import Backbone, prepared
from igd.errors import UserError
from igd.files.tensors import write_tensors
from igd.pretraining.encoders import fresh_encoder, frozen, kind_for, load_encoder, save_encoder

PIXELS = torch.from_numpy(stripes(12))[:, None]


@pytest.fixture(scope="module")
def encoder() -> Backbone:
    name, network = fresh_encoder((32, 32), False, PIXELS, seed=3, purpose="test")
    return frozen(name, network, "made by the test")


@pytest.fixture
def saved(encoder: Backbone, tmp_path: Path) -> Path:
    save_encoder(tmp_path / "encoder.igd", encoder, {"way": "test"})
    return tmp_path / "encoder.igd"


def test_small_images_keep_their_pixels() -> None:
    assert [kind_for(side, narrow=False) for side in (16, 64, 65)] == [
        "resnet18_small",
        "resnet18_small",
        "resnet18",
    ]
    assert [kind_for(side, narrow=True) for side in (64, 65)] == [
        "resnet18_small_narrow",
        "resnet18_narrow",
    ]


def test_fresh_encoders_are_the_seeds_and_their_statistics_the_images(encoder: Backbone) -> None:
    state = torch.get_rng_state()
    again, other = (
        fresh_encoder((32, 32), False, PIXELS, seed, "test")[1].state_dict() for seed in (3, 4)
    )
    assert torch.equal(torch.get_rng_state(), state)  # nobody else's chance is used up
    assert torch.equal(again["conv1.weight"], encoder.network.conv1.weight)
    assert not torch.equal(other["conv1.weight"], encoder.network.conv1.weight)
    first = encoder.network.conv1(prepared(PIXELS, encoder.kind, (32, 32)))
    torch.testing.assert_close(
        encoder.network.bn1.running_mean, first.mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5
    )


def test_saved_and_loaded_is_the_same(encoder: Backbone, saved: Path) -> None:
    loaded = load_encoder(saved)
    assert loaded.name == encoder.name
    assert loaded.identity == encoder.identity
    assert loaded.origin == "encoder.igd (made by the test)"
    image = prepared(PIXELS, encoder.kind, (32, 32))
    assert torch.equal(loaded.network(image), encoder.network(image))


def test_a_detector_looks_through_it_and_is_saved_with_it(saved: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="model:"):
        detector = IGD(pretrain=str(saved), scales=("global",), steps=2, width=2).fit(stripes(12))
    assert detector.provenance_["backbone"] == "resnet18_small"
    detector.save(tmp_path / "model.igd")
    saved.unlink()  # the model needs it no more
    images = stripes(4, seed=8)
    loaded = IGD.load(tmp_path / "model.igd")
    assert loaded.score_samples(images).tolist() == detector.score_samples(images).tolist()
    assert str(tmp_path).encode() not in (tmp_path / "model.igd").read_bytes()


def test_files_that_are_no_encoder_are_refused(saved: Path, tmp_path: Path) -> None:
    write_tensors(
        tmp_path / "model.igd", {"kind": "model", "format": 1}, {"scores": torch.zeros(1)}
    )
    with pytest.raises(UserError, match=r"model.igd: is an igd model, not an igd encoder"):
        load_encoder(tmp_path / "model.igd")
    with pytest.raises(UserError, match=r"encoder.igd: is an igd encoder, not an igd model"):
        IGD.load(saved)
    with pytest.raises(UserError, match=r"none.igd: no such file"):
        load_encoder(tmp_path / "none.igd")
    saved.write_bytes(saved.read_bytes()[:-1000])
    with pytest.raises(UserError, match=r"encoder.igd: not an igd encoder, or damaged"):
        load_encoder(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(backbone="vgg"), "damaged: no backbone is called 'vgg'"),
        (lambda header: header.update(backbone=["resnet18"]), "damaged: no backbone is called"),
        (lambda header: header.update(format=99), "made by a newer igd"),
        (
            lambda header: header.update(backbone="resnet18"),
            "not the weights of resnet18: conv1.weight is",
        ),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(saved: Path, change, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_encoder(edit(saved, change_header=change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tensors: tensors["conv1.weight"].fill_(torch.nan),
            "it holds values that are not numbers",
        ),
        (lambda tensors: tensors.pop("conv1.weight"), "conv1.weight is missing"),
        (lambda tensors: tensors.update(extra=torch.zeros(1)), "extra is not part of it"),
    ],
)
def test_tensors_that_make_no_sense_are_refused(saved: Path, change, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_encoder(edit(saved, change_tensors=change))


def test_a_pretraining_that_is_no_way_and_no_file_is_refused() -> None:
    with pytest.raises(UserError, match="pretrain is 'magic': neither scratch"):
        IGD(pretrain="magic").fit(stripes(4))
