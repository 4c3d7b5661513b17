"""What a frozen backbone sees: the same in any batch, cut to patches, and computed once."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import stripes

from igd import IGD
from igd.backbones.features import FrozenBackbone, patch_features
from igd.backbones.weights import find_weights, load_backbone, read_parameters


@pytest.fixture(scope="module")
def frozen() -> FrozenBackbone:
    return FrozenBackbone(load_backbone("efficientnet_lite0"), (64, 64), (7, 10), vector=True)


def test_maps_of_the_blocks_asked_for_and_the_vector(frozen: FrozenBackbone) -> None:
    seen = frozen(torch.randint(0, 256, (3, 1, 32, 32), dtype=torch.uint8))
    assert [each.shape for each in seen.maps] == [(3, 80, 4, 4), (3, 112, 4, 4)]
    assert seen.vector is not None
    assert seen.vector.shape == (3, frozen.backbone.features) == (3, 4 * 112 + 4 * 192 + 1280)
    lengths = torch.stack([part.norm(dim=1) for part in seen.vector.split((448, 768, 1280), dim=1)])
    # Grey: shapes count most.
    torch.testing.assert_close(lengths, torch.tensor([1.0, 1.0, 0.5])[:, None].expand(3, 3))


def test_the_vector_tells_where_in_the_image_a_shape_is(frozen: FrozenBackbone) -> None:
    """A spot and its mirror image: what is on the left of one is on the right of the other."""
    pixels = torch.full((2, 3, 32, 32), 90, dtype=torch.uint8)
    pixels[0, :, 4:12, 4:12] = pixels[1, :, 4:12, 20:28] = 250
    one, other = frozen(pixels).vector[:, :448].view(2, 112, 2, 2)
    assert (one - other).norm() > 2 * (one - other.flip(-1)).norm()
    assert frozen.patch_features == 192


def test_without_the_vector_the_layers_behind_are_not_kept(frozen: FrozenBackbone) -> None:
    shorter = FrozenBackbone(frozen.backbone, (64, 64), (7, 10), vector=False)
    pixels = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    assert shorter(pixels).vector is None
    for one, other in zip(shorter(pixels).maps, frozen(pixels).maps, strict=True):
        torch.testing.assert_close(one, other)
    assert shorter.parameters().keys() < frozen.parameters().keys()
    assert shorter.described != frozen.described


def test_an_image_looks_the_same_in_any_batch(
    frozen: FrozenBackbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = torch.randint(0, 256, (7, 3, 64, 64), dtype=torch.uint8)
    whole = frozen(pixels).vector
    monkeypatch.setattr("igd.backbones.features.PIXELS_AT_ONCE", 2 * 64 * 64)
    torch.testing.assert_close(frozen(pixels).vector, whole, rtol=1e-4, atol=1e-5)


def test_each_patch_is_seen_where_it_lies() -> None:
    """A map that holds one odd cell: only the patches that cover it differ from the others."""
    maps = torch.ones(1, 2, 5, 5)
    maps[0, :, 1, 3] = torch.tensor([1.0, 0.0])
    patches = patch_features([maps], 4, 4, margin=0)
    assert patches.shape == (1, 4, 4, 2)
    differs = (patches - patches[0, 3, 0]).abs().sum(dim=3)[0] > 1e-6
    assert differs.nonzero().tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_a_margin_repeats_the_edge_and_leaves_the_inside() -> None:
    maps = [torch.randn(2, 3, 8, 8), torch.randn(2, 4, 6, 6)]
    inner, wide = patch_features(maps, 5, 5, 0), patch_features(maps, 7, 7, 1)
    assert wide.shape == (2, 7, 7, 7)
    torch.testing.assert_close(wide[:, 1:-1, 1:-1], inner)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images backbones looked at, call by call."""
    counts: list[int] = []
    see = FrozenBackbone._outputs

    def counting(self: FrozenBackbone, pixels: torch.Tensor) -> object:
        counts.append(len(pixels))
        return see(self, pixels)

    monkeypatch.setattr(FrozenBackbone, "_outputs", counting)
    return counts


@pytest.mark.filterwarnings("ignore:.*model.*")
def test_a_second_training_looks_at_no_image(tmp_path: Path, looked_at: list[int]) -> None:
    settings = {
        "scales": ("local",),
        "image_size": 128,
        "steps": 2,
        "width": 2,
        "feature_cache": tmp_path / "cache",
    }

    def looks(images: np.ndarray, **changed: object) -> int:
        looked_at.clear()
        IGD(**{**settings, **changed}).fit(images)
        return sum(looked_at)

    images = stripes(12, side=128)
    plain = {name: value for name, value in settings.items() if name != "feature_cache"}
    assert (
        IGD(**settings).fit(images).score_samples(images).tolist()
        == IGD(**plain).fit(images).score_samples(images).tolist()
    )
    assert looks(images) == 0
    assert looks(stripes(12, side=128, seed=1)) == 12
    assert looks(images, seed=1) == 0
    parameters = read_parameters(find_weights("efficientnet_lite0"))
    parameters["_conv_stem.weight"] = parameters["_conv_stem.weight"] * 1.01
    torch.save(parameters, tmp_path / "other.pth")
    assert looks(images, weights=tmp_path / "other.pth") == 12
