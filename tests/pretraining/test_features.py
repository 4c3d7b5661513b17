"""What a frozen backbone sees: the same in any batch, cut to patches, and computed once."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import stripes

from igd import IGD
from igd.errors import UserError
from igd.pretraining.features import FrozenBackbone, patch_features, remembered
from igd.pretraining.weights import find_weights, load_backbone, read_parameters


@pytest.fixture(scope="module")
def frozen() -> FrozenBackbone:
    return FrozenBackbone(load_backbone("efficientnet_lite0"), 64, (7, 10), vector=True)


def test_maps_of_the_blocks_asked_for_and_the_vector(frozen: FrozenBackbone) -> None:
    seen = frozen(torch.randint(0, 256, (3, 1, 32, 32), dtype=torch.uint8))
    assert [each.shape for each in seen.maps] == [(3, 80, 4, 4), (3, 112, 4, 4)]
    assert seen.vector is not None
    assert seen.vector.shape == (3, 112 + 192 + 1280)
    for part in seen.vector.split((112, 192, 1280), dim=1):
        torch.testing.assert_close(part.norm(dim=1), torch.ones(3))
    assert frozen.patch_features == 192


def test_without_the_vector_the_layers_behind_are_not_kept(frozen: FrozenBackbone) -> None:
    shorter = FrozenBackbone(frozen.backbone, 64, (7, 10), vector=False)
    pixels = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    assert shorter(pixels).vector is None
    for one, other in zip(shorter(pixels).maps, frozen(pixels).maps, strict=True):
        torch.testing.assert_close(one, other)
    assert shorter.parameters().keys() < frozen.parameters().keys()
    assert shorter.described != frozen.described


def test_an_image_looks_the_same_in_any_batch(frozen: FrozenBackbone, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = torch.randint(0, 256, (7, 3, 64, 64), dtype=torch.uint8)
    whole = frozen(pixels).vector
    monkeypatch.setattr("igd.pretraining.features.PIXELS_AT_ONCE", 2 * 64 * 64)
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


class Counted:
    """Something to compute, and how often it was."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, torch.Tensor]:
        self.times += 1
        return {"features": torch.arange(1000.0) + self.times}


def test_remembered_is_computed_once_for_what_is_described(tmp_path: Path) -> None:
    compute = Counted()
    first = remembered(tmp_path / "cache", {"images": "a", "side": 3}, compute)
    again = remembered(tmp_path / "cache", {"side": 3, "images": "a"}, compute)
    assert compute.times == 1
    assert torch.equal(first["features"], again["features"])
    remembered(tmp_path / "cache", {"images": "b", "side": 3}, compute)
    assert compute.times == 2
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_nothing_is_kept_where_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compute = Counted()
    for _ in range(2):
        remembered(None, {"images": "a"}, compute)
    assert compute.times == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("left", [0, 5, 100, 2000])
def test_a_damaged_file_is_made_again(tmp_path: Path, left: int) -> None:
    compute = Counted()
    remembered(tmp_path, "a", compute)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:left])
    assert remembered(tmp_path, "a", compute)["features"][0] == 2
    assert remembered(tmp_path, "a", compute)["features"][0] == 2
    assert compute.times == 2
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_of_something_else_is_not_taken(tmp_path: Path) -> None:
    """As after a collision of the short names, or a copied file."""
    remembered(tmp_path, "a", Counted())
    (file,) = tmp_path.iterdir()
    contents = file.read_bytes()
    file.unlink()
    remembered(tmp_path, "b", Counted())
    (other,) = tmp_path.iterdir()
    other.write_bytes(contents)
    compute = Counted()
    remembered(tmp_path, "b", compute)
    assert compute.times == 1


def test_a_write_that_fails_leaves_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("igd.files.save_file", fails)
    with pytest.raises(OSError, match="No space left"):
        remembered(tmp_path, "a", Counted())
    assert not list(tmp_path.iterdir())


def test_a_cache_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file: can't create this folder .*; choose another place"):
        remembered(tmp_path / "file", "a", Counted())


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images backbones looked at, call by call."""
    counts: list[int] = []
    see = FrozenBackbone.__call__

    def counting(self: FrozenBackbone, pixels: torch.Tensor) -> object:
        counts.append(len(pixels))
        return see(self, pixels)

    monkeypatch.setattr(FrozenBackbone, "__call__", counting)
    return counts


@pytest.mark.filterwarnings("ignore:.*model.*")
def test_a_second_training_looks_at_no_training_image(tmp_path: Path, looked_at: list[int]) -> None:
    """Of 12 images 2 are held out, and looked at for the spreads and for the threshold; the other 10 are trained on."""
    settings = {"scales": ("local",), "image_size": 96, "steps": 2, "width": 2, "feature_cache": tmp_path / "cache"}
    held_out_twice = 2 * 2

    def looks(images: np.ndarray, **changed: object) -> int:
        looked_at.clear()
        IGD(**{**settings, **changed}).fit(images)
        return sum(looked_at)

    images = stripes(12, side=96)
    plain = {name: value for name, value in settings.items() if name != "feature_cache"}
    assert (
        IGD(**settings).fit(images).score_samples(images).tolist() == IGD(**plain).fit(images).score_samples(images).tolist()
    )
    assert looks(images) == held_out_twice
    assert looks(stripes(12, side=96, seed=1)) == 10 + held_out_twice
    parameters = read_parameters(find_weights("efficientnet_lite0"))
    parameters["_conv_stem.weight"] = parameters["_conv_stem.weight"] * 1.01
    torch.save(parameters, tmp_path / "other.pth")
    assert looks(images, weights=tmp_path / "other.pth") == 10 + held_out_twice
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(file.read_bytes()[:-50])
    assert looks(images) == 10 + held_out_twice
    assert looks(images) == held_out_twice
