"""Learning by contrast: the loss against loops, and a training of a few steps."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from conftest import stripes
from torch import Tensor

from igd.backbones.architectures import TURNS, Backbone, prepared
from igd.errors import Interrupted, UserError
from igd.files.checkpoint_file import Checkpoint
from igd.pretraining.contrastive import (
    Contrast,
    Contrasted,
    contrast,
    contrast_loss,
    nt_xent,
)
from igd.progress import Progress

PIXELS = torch.from_numpy(stripes(24, side=16))[:, None]
QUICK = Contrast(steps=20, batch_size=4, learning_rate=0.02, weight_decay=5e-4)


def colours() -> Tensor:
    """Red, green, blue and black: images that are easily told apart."""
    images = torch.zeros(4, 3, 16, 16, dtype=torch.uint8)
    for number in range(3):
        images[number, number] = 255
    return images


def slow_nt_xent(one: Tensor, other: Tensor, temperature: float) -> float:
    """As Chen et al. write it: for each view, minus the logarithm of its partner's share among all
    others.
    """

    def likeness(first: Tensor, second: Tensor) -> float:
        return math.exp(F.cosine_similarity(first, second, dim=0).item() / temperature)

    views = [*one, *other]
    total = 0.0
    for number, view in enumerate(views):
        partner = views[(number + len(one)) % len(views)]
        others = [each for place, each in enumerate(views) if place != number]
        total -= math.log(likeness(view, partner) / sum(likeness(view, each) for each in others))
    return total / len(views)


@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_loss_equals_the_loops(temperature: float) -> None:
    one, other = torch.randn(5, 8), torch.randn(5, 8)
    expected = slow_nt_xent(one, other, temperature)
    assert nt_xent(one, other, temperature).item() == pytest.approx(expected, rel=1e-5)


def test_loss_does_not_care_which_view_came_first_nor_how_long_vectors_are() -> None:
    one, other = torch.randn(6, 8), torch.randn(6, 8)
    loss = nt_xent(one, other, 0.2)
    torch.testing.assert_close(nt_xent(other, one, 0.2), loss)
    torch.testing.assert_close(nt_xent(7 * one, 0.1 * other, 0.2), loss)
    order = torch.randperm(6)
    torch.testing.assert_close(nt_xent(one[order], other[order], 0.2), loss)


def test_views_that_belong_together_cost_less() -> None:
    one = torch.eye(6)
    assert nt_xent(one, one, 0.2) < nt_xent(one, one.roll(1, 0), 0.2)


def test_loss_has_the_right_gradient() -> None:
    one = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    other = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, 0.5), (one, other))


@pytest.fixture(scope="module")
def learnt() -> Contrasted:
    return contrast(colours(), QUICK, Progress())


def test_loss_falls(learnt: Contrasted) -> None:
    assert learnt.losses.isfinite().all()
    assert learnt.losses[-5:].mean() < 0.7 * learnt.losses[:3].mean()


def test_encoder_is_frozen_and_tells_images_apart(learnt: Contrasted) -> None:
    encoder = learnt.encoder
    assert encoder.name == "resnet18_small"
    assert not any(value.requires_grad for value in encoder.network.parameters())
    vectors = encoder.network(prepared(colours(), encoder.kind, (16, 16)))
    assert vectors.shape == (4, 512)
    likeness = F.cosine_similarity(vectors[:, None], vectors[None], dim=2)
    assert likeness[~torch.eye(4, dtype=torch.bool)].max() < 0.99


def test_the_same_seed_gives_the_same_encoder() -> None:
    short = Contrast(steps=2, batch_size=4)
    one, again = contrast(PIXELS, short, Progress()), contrast(PIXELS, short, Progress())
    assert one.encoder.identity == again.encoder.identity
    assert torch.equal(one.losses, again.losses)
    other = contrast(PIXELS, Contrast(steps=2, batch_size=4, seed=1), Progress())
    assert other.encoder.identity != one.encoder.identity


def test_a_turned_image_is_another_one_and_its_turn_is_told() -> None:
    settings = Contrast(projection=8, rotated=True)
    images, projected = 3, torch.randn(2 * TURNS * 3, 8)
    logits = torch.randn(len(projected), TURNS)
    loss = contrast_loss(torch.cat([projected, logits], dim=1), settings)
    one, other = projected.chunk(2)
    # Rows are a view's upright images, then those turned once, and so on.
    turns = [row // images % TURNS for row in range(len(projected))]
    told = -sum(logits[row].log_softmax(0)[turn] for row, turn in enumerate(turns)) / len(turns)
    expected = slow_nt_xent(one, other, settings.temperature) + told.item()
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_without_turns_the_loss_is_of_two_views() -> None:
    settings = Contrast(projection=8)
    made = torch.randn(10, 8)
    assert contrast_loss(made, settings) == nt_xent(*made.chunk(2), settings.temperature)


def test_a_rectangle_does_not_show_how_it_is_turned() -> None:
    wide = PIXELS[..., :12, :]
    learnt = contrast(wide, Contrast(steps=1, batch_size=4, narrow=True, rotated=True), Progress())
    assert learnt.losses.isfinite().all()


@pytest.mark.parametrize("rotated", [False, True])
def test_what_was_told_from_its_turns_is_read_in_all_of_them(rotated: bool) -> None:
    shown: list[Backbone] = []
    learnt = contrast(
        PIXELS,
        Contrast(steps=1, batch_size=4, narrow=True, rotated=rotated),
        Progress(),
        watch=lambda _, encoder: shown.append(encoder),
    )
    for encoder in (learnt.encoder, *shown):
        assert (encoder.turned, encoder.seen_twice) == (rotated, rotated)
    turns = TURNS if rotated else 1
    assert learnt.encoder.features == turns * learnt.encoder.kind.pooled


def test_stopping_raises_interrupted() -> None:
    asked = iter([False, False, True])
    with pytest.raises(Interrupted, match="stopped"):
        contrast(PIXELS, QUICK, Progress(), stop=lambda: next(asked))


@pytest.mark.parametrize("rotated", [False, True])
def test_stopped_and_resumed_equals_uninterrupted(tmp_path: Path, rotated: bool) -> None:
    settings = Contrast(steps=5, batch_size=4, narrow=True, rotated=rotated)
    whole = contrast(PIXELS, settings, Progress())
    for stop_at in (2, 4, 5):  # each goes on where the one before was stopped
        saved = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
        saved.load()
        answers = iter(
            step == stop_at for step in range(int(saved.part("encoder").get("step", 0)) + 1, 6)
        )
        with pytest.raises(Interrupted, match="go on with --resume"):
            contrast(PIXELS, settings, Progress(), lambda answers=answers: next(answers), saved)
    saved = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
    assert saved.load()
    resumed = contrast(
        PIXELS, settings, Progress(), lambda: pytest.fail("all steps were done"), saved
    )
    assert resumed.encoder.identity == whole.encoder.identity
    assert torch.equal(resumed.losses, whole.losses)


def test_a_checkpoint_of_other_networks_is_named_with_the_way_out(tmp_path: Path) -> None:
    settings = Contrast(steps=3, batch_size=4, narrow=True)
    saved = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
    asked = iter([False, True])
    with pytest.raises(Interrupted):
        contrast(PIXELS, settings, Progress(), lambda: next(asked), saved)
    with pytest.raises(UserError, match=r"run\.checkpoint: was written by another version"):
        contrast(PIXELS, replace(settings, rotated=True), Progress(), saved=saved)


def test_whoever_watches_sees_every_step() -> None:
    seen: list[int] = []
    contrast(
        PIXELS,
        Contrast(steps=2, batch_size=4),
        Progress(),
        watch=lambda step, encoder: seen.append(step),
    )
    assert seen == [1, 2]


def test_length_of_a_training() -> None:
    assert Contrast(epochs=10, batch_size=32).total_steps(65) == 30
    assert Contrast(epochs=10, steps=7).total_steps(65) == 7
