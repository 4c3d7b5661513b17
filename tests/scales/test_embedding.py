"""A Gaussian of whole images' embeddings, as a scale."""

from pathlib import Path

import pytest
import torch

from igd.backbones.features import Features
from igd.scales.embedding import EmbeddingScale
from igd.scales.scale_settings import EmbeddingSettings


def images(count: int, seed: int = 0) -> Features:
    return Features([], torch.randn(count, 12, generator=torch.Generator().manual_seed(seed)))


def learnt(normal: Features) -> EmbeddingScale:
    scale = EmbeddingScale(EmbeddingSettings())
    scale.learn(normal, torch.Generator())
    return scale


def test_its_only_part_grows_with_the_distance_and_it_has_no_map() -> None:
    scale, others = learnt(images(50)), images(9, seed=1)
    (distance,) = scale.distances(others)
    output = scale.output([distance], (32, 32))
    assert torch.equal(output.parts[0].argsort(), distance.argsort())
    assert output.maps == []


def test_what_is_stored_measures_the_same() -> None:
    scale, restored = learnt(images(50)), EmbeddingScale(EmbeddingSettings())
    restored.restore(scale.tensors(), Path("x.igd"))
    others = images(5, seed=1)
    assert torch.equal(restored.distances(others)[0], scale.distances(others)[0])
    assert torch.equal(
        restored.latents(torch.zeros(0), others), scale.latents(torch.zeros(0), others)
    )


def test_more_images_move_it() -> None:
    scale, more = learnt(images(50)), images(30, seed=2)
    more = Features([], more.vector + 3)
    before = scale.distances(more)[0]
    scale.extend(more, 50, torch.Generator())
    assert (scale.distances(more)[0] < before).all()


def test_turns_join_its_part_and_are_stored() -> None:
    settings = EmbeddingSettings(turns=True)
    scale, restored = EmbeddingScale(settings), EmbeddingScale(settings)
    means = Features([], images(50).vector + 4 * torch.eye(4, 3).flatten())
    scale.learn(means, torch.Generator())
    others = images(9, seed=1)
    distances = scale.distances(others)
    output = scale.output(distances, (32, 32))
    torch.testing.assert_close(output.parts[0], output.terms["distance"] + output.terms["turns"])
    assert torch.equal(output.terms["turns"], distances[1])
    restored.restore(scale.tensors(), Path("x.igd"))
    assert torch.equal(restored.distances(others)[1], distances[1])
    with pytest.raises(ValueError, match="turns of the wrong shape"):
        restored.restore({**scale.tensors(), "turns": torch.zeros(3)}, Path("x.igd"))
    with pytest.raises(LookupError):
        restored.restore(learnt(images(50)).tensors(), Path("x.igd"))


def test_more_images_leave_the_direction_of_turns() -> None:
    scale = EmbeddingScale(EmbeddingSettings(turns=True))
    apart = 4 * torch.eye(4, 3).flatten()
    scale.learn(Features([], images(50).vector + apart), torch.Generator())
    before = scale.turns
    assert before is not None
    assert before.any()
    more = Features([], images(30, seed=2).vector + apart + 1)
    scale.extend(more, 50, torch.Generator())
    assert torch.equal(scale.turns, before)
    assert scale.distances(more)[1].mean().abs() < 1
