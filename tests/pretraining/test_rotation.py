"""Learning turns: what an encoder makes of them, and that its vector holds all four."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from machine import needs_bfloat16
from torch import Tensor

from igd import IGD
from igd.backbones.architectures import Backbone, mirrored_middle, prepared, rotations
from igd.backbones.features import FrozenBackbone
from igd.deploy.export import export
from igd.errors import Interrupted, UserError
from igd.files.checkpoint_file import Checkpoint
from igd.files.tensors import read_tensors, write_tensors
from igd.inference.runtime import Runtime
from igd.persistence.model_file import FORMAT, KIND
from igd.pretraining.encoder_training import Precision
from igd.pretraining.encoders import load_encoder, save_encoder
from igd.pretraining.rotation import FAST, Rotated, Rotation, fast, learn_rotation
from igd.progress import Progress
from igd.training.backbone_origin import Origin

QUICK = Rotation(steps=30, batch_size=8, narrow=True)


def upright(count: int = 24, side: int = 16, seed: int = 0) -> Tensor:
    """Light above, dark below, with some noise: images that have an up."""
    rng = torch.Generator().manual_seed(seed)
    light = torch.linspace(220, 30, side)[None, None, :, None].expand(count, 1, side, side)
    noise = 20 * torch.rand(count, 1, side, side, generator=rng)
    return (light + noise).to(torch.uint8)


@pytest.fixture(scope="module")
def learnt() -> Rotated:
    return learn_rotation(upright(), QUICK, Progress())


def test_it_learns_which_way_up_images_are(learnt: Rotated) -> None:
    assert learnt.losses[:3].mean() > 0.5 * math.log(4)
    assert learnt.losses[-5:].mean() < 0.2 * math.log(4)


def test_nothing_is_learnt_from_images_without_an_up() -> None:
    """Whoever guesses does no better than the logarithm of 4."""
    grey = torch.full((24, 1, 16, 16), 128, dtype=torch.uint8)
    assert learn_rotation(grey, QUICK, Progress()).losses[-5:].mean() > 0.9 * math.log(4)


def test_long_images_are_learnt_from_as_squares() -> None:
    """Their shape would give the turn away; they are scored as they are."""
    long = torch.cat([upright(16), upright(16, seed=1)], dim=3)
    made = learn_rotation(long, QUICK, Progress())
    assert made.losses[-5:].mean() < 0.2 * math.log(4)
    look = FrozenBackbone(made.encoder, (16, 32), (), vector=True)
    vector = look(long[:2]).vector
    assert vector is not None
    assert vector.shape == (2, made.encoder.features)


def test_whoever_watches_sees_what_is_returned() -> None:
    seen: list[bool] = []
    learn_rotation(
        upright(),
        replace(QUICK, steps=2),
        Progress(),
        watch=lambda _, encoder: seen.append(encoder.turned),
    )
    assert seen == [True, True]


def test_the_vector_is_of_all_turns(learnt: Rotated) -> None:
    """Each part of unit length; turning the image moves the parts round."""
    look = FrozenBackbone(replace(learnt.encoder, seen_twice=False), (16, 16), (), vector=True)
    pixels = upright(3, seed=1)
    vector = look(pixels).vector
    assert vector is not None
    assert vector.shape == (3, 4 * learnt.encoder.kind.pooled)
    assert learnt.encoder.features == vector.shape[1]
    parts = vector.unflatten(1, (4, -1))
    torch.testing.assert_close(parts.norm(dim=2), torch.ones(3, 4))
    turned = look(rotations(pixels)[0]).vector
    assert turned is not None
    torch.testing.assert_close(
        turned.unflatten(1, (4, -1)), parts.roll(-1, dims=1), rtol=1e-3, atol=1e-4
    )
    alone = learnt.encoder.network(prepared(pixels, learnt.encoder.kind, (16, 16)))
    torch.testing.assert_close(
        torch.nn.functional.normalize(alone, dim=1), parts[:, 0], rtol=1e-3, atol=1e-4
    )


def test_of_each_turn_it_is_the_mean_of_the_image_and_its_mirrored_middle(learnt: Rotated) -> None:
    once, twice = (
        FrozenBackbone(replace(learnt.encoder, seen_twice=each), (16, 16), (), vector=True)
        for each in (False, True)
    )
    pixels = torch.randint(256, (3, 1, 16, 16), generator=torch.Generator().manual_seed(0))
    middle = mirrored_middle(pixels.float())
    whole, part, both = (
        look(each).vector for look, each in ((once, pixels), (once, middle), (twice, pixels))
    )
    assert whole is not None
    assert part is not None
    assert both is not None
    mean = torch.nn.functional.normalize((whole + part).unflatten(1, (4, -1)), dim=2)
    torch.testing.assert_close(both.unflatten(1, (4, -1)), mean, rtol=1e-3, atol=1e-4)
    assert once.described != twice.described


def test_the_middle_is_half_of_an_image() -> None:
    image = torch.arange(20.0).expand(1, 1, 20, 20)
    middle = mirrored_middle(image)
    assert middle.shape == image.shape
    assert middle[0, 0, 0, 0] == pytest.approx(16, abs=0.5)
    assert middle[0, 0, 0, -1] == pytest.approx(3, abs=0.5)
    torch.testing.assert_close(middle.mean(), image.mean())


def test_other_encoders_look_at_images_as_they_are(learnt: Rotated) -> None:
    plain = replace(learnt.encoder, turned=False)
    one, other = (FrozenBackbone(each, (16, 16), (), True) for each in (plain, learnt.encoder))
    assert plain.features == learnt.encoder.kind.pooled
    assert one.described != other.described  # nor do they share cached features


def test_a_file_remembers_the_turns(learnt: Rotated, tmp_path: Path) -> None:
    save_encoder(tmp_path / "encoder.igd", learnt.encoder, {})
    loaded = load_encoder(tmp_path / "encoder.igd")
    assert loaded.turned
    assert loaded.seen_twice
    assert loaded.identity == learnt.encoder.identity


def test_train_save_load_and_export_agree(learnt: Rotated, tmp_path: Path) -> None:
    """And what is upside down is what stands out."""
    save_encoder(tmp_path / "encoder.igd", learnt.encoder, {})
    images = upright(40)[:, 0].numpy()
    detector = IGD(pretrain=str(tmp_path / "encoder.igd")).fit(images)
    fresh = upright(5, seed=2)
    shown = torch.cat([fresh, rotations(fresh)[1]])[:, 0].numpy()
    scores = -detector.score_samples(shown)
    assert scores[5:].min() > scores[:5].max()
    terms = [each.terms["embedding.turns"] for each in detector.predict(shown)]
    assert min(terms[5:]) > max(terms[:5])
    detector.save(tmp_path / "model.igd")
    loaded = -IGD.load(tmp_path / "model.igd").score_samples(shown)
    np.testing.assert_array_equal(loaded, scores)
    export(detector, tmp_path / "model.onnx")  # refuses a model that strays
    runtime = Runtime.load(tmp_path / "model.onnx", threads=1)
    exported = [each.score for each in runtime.predict(shown)]
    np.testing.assert_allclose(exported, scores, atol=1e-4)


def test_a_model_of_before_scores_without_turns(
    learnt: Rotated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that says turns of an encoder that never saw any is refused."""
    monkeypatch.setattr(Origin, "turned", False)
    encoder, path = tmp_path / "encoder.igd", tmp_path / "model.igd"
    save_encoder(encoder, replace(learnt.encoder, seen_twice=False), {})
    images = upright(40)[:, 0].numpy()
    before = IGD(pretrain=str(encoder)).fit(images)
    before.save(path)
    header, tensors = read_tensors(path, KIND, FORMAT)
    (embedding,) = (each for each in header["scales"] if each["name"] == "embedding")
    assert embedding.pop("turns") is False
    write_tensors(path, {**header, "format": 8}, tensors)
    loaded = IGD.load(path)
    assert "embedding.turns" not in loaded.predict(images[0]).terms
    np.testing.assert_array_equal(loaded.score_samples(images), before.score_samples(images))
    embedding["turns"] = True
    header["backbone"]["turned"] = False
    write_tensors(path, header, tensors)
    with pytest.raises(UserError, match="turns that its backbone never saw"):
        IGD.load(path)


@needs_bfloat16
def test_rounded_to_half_the_bits_it_learns_as_well(learnt: Rotated) -> None:
    seen: list[torch.dtype] = []
    settings = replace(QUICK, precision="bf16-mixed")

    def watch(_: int, encoder: Backbone) -> None:
        seen.append(next(encoder.network.parameters()).dtype)

    rounded = learn_rotation(upright(), settings, Progress(), watch=watch)
    assert rounded.losses[-5:].mean() < 0.2 * math.log(4)
    assert not torch.equal(rounded.losses, learnt.losses)
    assert set(seen) == {torch.float32}
    again = learn_rotation(upright(), settings, Progress())
    assert again.encoder.identity == rounded.encoder.identity


def test_the_same_seed_gives_the_same_encoder(learnt: Rotated) -> None:
    again = learn_rotation(upright(), QUICK, Progress())
    assert again.encoder.identity == learnt.encoder.identity
    other = learn_rotation(upright(), replace(QUICK, seed=1), Progress())
    assert other.encoder.identity != learnt.encoder.identity


@pytest.mark.parametrize("precision", ["32-true", pytest.param("bf16-mixed", marks=needs_bfloat16)])
def test_stopped_and_resumed_equals_uninterrupted(precision: Precision, tmp_path: Path) -> None:
    settings = replace(QUICK, steps=4, precision=precision)
    whole = learn_rotation(upright(), settings, Progress())
    asked = iter([False, True])
    saved = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
    with pytest.raises(Interrupted, match="go on with --resume"):
        learn_rotation(upright(), settings, Progress(), lambda: next(asked), saved)
    saved = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
    assert saved.load()
    resumed = learn_rotation(upright(), settings, Progress(), saved=saved)
    assert resumed.encoder.identity == whole.encoder.identity
    assert torch.equal(resumed.losses, whole.losses)


def test_a_file_s_encoder_may_know_the_images_and_it_is_said(
    learnt: Rotated, tmp_path: Path
) -> None:
    file = tmp_path / "encoder.igd"
    save_encoder(file, learnt.encoder, {})
    images, others = upright(40)[:, 0].numpy(), upright(30, seed=5)[:, 0].numpy()
    said = IGD(pretrain=str(file)).fit(images).fitted_.provenance["warnings"]
    assert any("if this encoder learnt from these images" in each for each in said)
    apart = IGD(pretrain=str(file)).fit(images, calibration_images=others)
    assert apart.fitted_.provenance["warnings"] == []


def test_large_images_get_fewer_steps() -> None:
    assert fast(64) == FAST
    assert fast(65) == replace(FAST, steps=FAST.steps // 8)
