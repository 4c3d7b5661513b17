"""Distillation: a student that comes closer to its teacher."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from conftest import stripes
from torch import Tensor

from igd.backbones.features import Features, FrozenBackbone
from igd.backbones.weights import load_backbone
from igd.errors import Interrupted
from igd.files.checkpoint_file import Checkpoint
from igd.pretraining.distillation import Distillation, Distilled, distil, teacher_vectors
from igd.progress import Progress

PIXELS = torch.from_numpy(stripes(20, side=16))[:, None]


@pytest.fixture(scope="module")
def teacher() -> FrozenBackbone:
    return FrozenBackbone(load_backbone("efficientnet_lite0"), (64, 64), (), vector=True)


class SimpleTeacher:
    """Sees how bright the quarters of an image are: easily learnt."""

    backbone = SimpleNamespace(name="simple")

    def __call__(self, pixels: Tensor) -> Features:
        return Features([], F.adaptive_avg_pool2d(pixels.float(), 2).flatten(1))


@pytest.fixture(scope="module")
def distilled() -> Distilled:
    return distil(
        SimpleTeacher(),
        PIXELS,
        Distillation(steps=40, batch_size=6, learning_rate=3e-3, narrow=True),
        Progress(),
    )


def test_teachers_vectors_are_computed_once(teacher: FrozenBackbone) -> None:
    vectors = teacher_vectors(teacher, PIXELS, Progress())
    assert vectors.shape == (20, teacher.backbone.features)
    torch.testing.assert_close(vectors[3], teacher(PIXELS[3:4]).vector[0], rtol=1e-4, atol=1e-5)


def test_loss_falls(distilled: Distilled) -> None:
    assert distilled.losses.isfinite().all()
    assert distilled.losses[-10:].mean() < 0.7  # the mean alone: 1


def test_student_comes_closer_to_the_teacher(distilled: Distilled) -> None:
    untaught = distil(
        SimpleTeacher(),
        PIXELS,
        Distillation(steps=1, batch_size=2, learning_rate=1e-9, narrow=True),
        Progress(),
    )
    assert untaught.agreement < distilled.agreement <= 1


def test_student_is_frozen_and_says_where_it_comes_from(distilled: Distilled) -> None:
    assert distilled.encoder.name == "resnet18_small_narrow"
    assert distilled.encoder.origin == "distilled from simple in 40 steps"
    assert not any(value.requires_grad for value in distilled.encoder.network.parameters())


def test_the_same_seed_gives_the_same_student(teacher: FrozenBackbone) -> None:
    short = Distillation(steps=2, batch_size=4)
    one, again = (
        distil(teacher, PIXELS, short, Progress()),
        distil(teacher, PIXELS, short, Progress()),
    )
    assert one.encoder.identity == again.encoder.identity
    assert one.agreement == again.agreement
    other = distil(teacher, PIXELS, Distillation(steps=2, batch_size=4, seed=1), Progress())
    assert other.encoder.identity != one.encoder.identity


@pytest.mark.parametrize(
    "answers", [[True], [False, False, True]]
)  # asked by the teacher's pass, then at each step
def test_stopping_raises_interrupted(teacher: FrozenBackbone, answers: list[bool]) -> None:
    asked = iter(answers)
    with pytest.raises(Interrupted, match="stopped"):
        distil(
            teacher,
            PIXELS,
            Distillation(steps=5, batch_size=4),
            Progress(),
            stop=lambda: next(asked),
        )


def test_stopped_and_resumed_equals_uninterrupted(teacher: FrozenBackbone, tmp_path: Path) -> None:
    settings = Distillation(steps=5, batch_size=4, narrow=True)
    whole = distil(teacher, PIXELS, settings, Progress())
    asked = iter([False, False, False, True])  # by the teacher's pass, then at each step
    saved = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
    with pytest.raises(Interrupted, match="go on with --resume"):
        distil(teacher, PIXELS, settings, Progress(), lambda: next(asked), saved)
    again = Checkpoint(tmp_path / "run.checkpoint", "this", {"parameters": {}})
    assert again.load()
    assert again.part("encoder")["step"] == 3
    left = iter([False, False, False])  # the teacher's pass and two steps, no more
    resumed = distil(teacher, PIXELS, settings, Progress(), lambda: next(left), again)
    assert resumed.encoder.identity == whole.encoder.identity
    assert torch.equal(resumed.losses, whole.losses)
    assert resumed.agreement == whole.agreement
    assert next(left, None) is None
