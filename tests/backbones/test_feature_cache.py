"""Features are computed once for an image, kept whole or not at all, and never taken for those of
something else.
"""

import sqlite3
from pathlib import Path

import pytest
import torch
from torch import Tensor

from igd.backbones.feature_cache import FeatureCache, digest
from igd.errors import UserError


def images(count: int, seed: int = 0) -> Tensor:
    return torch.randint(
        0, 256, (count, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )


class Looks:
    """A function of images with two outputs, and how many images it was given."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor, self.seen = factor, 0

    def __call__(self, pixels: Tensor) -> list[Tensor]:
        self.seen += len(pixels)
        return [self.factor * pixels.float().mean(dim=(2, 3)), pixels.float()[:, :, ::4, ::4] / 7]


def test_only_new_images_are_looked_at_and_order_is_kept(tmp_path: Path) -> None:
    look, memory = Looks(), FeatureCache(tmp_path / "kept", "a")
    pixels = images(6)
    memory(pixels[:4], look)
    mixed = pixels[torch.tensor([5, 1, 4, 0, 1])]
    for one, other in zip(memory(mixed, look), Looks()(mixed), strict=True):
        assert torch.equal(one, other)
    assert look.seen == 6
    assert (memory.computed, memory.recalled) == (6, 3)
    assert FeatureCache(tmp_path / "kept", "a")(mixed, look)[0].shape == (5, 3)
    assert look.seen == 6


def test_each_description_has_its_own_file(tmp_path: Path) -> None:
    for described, factor in (("a", 1.0), ("b", 2.0)):
        first = FeatureCache(tmp_path, described)(images(2), Looks(factor))[0]
        assert torch.equal(first, factor * images(2).float().mean(dim=(2, 3)))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_mirror_image_and_another_shape_are_other_images() -> None:
    image = images(1)[0]
    assert len({digest(image), digest(image.flip(-1)), digest(image.reshape(3, 4, 16))}) == 3


@pytest.mark.parametrize("left", [0, 5, 100, 5000])
def test_a_cut_off_file_is_made_again(tmp_path: Path, left: int) -> None:
    memory = FeatureCache(tmp_path, "a")
    memory(images(40), Looks())
    memory.path.write_bytes(memory.path.read_bytes()[:left])
    look = Looks()
    for _ in range(2):
        assert torch.equal(memory(images(40), look)[0], Looks()(images(40))[0])
    assert look.seen == 40


def test_a_changed_row_is_computed_again(tmp_path: Path) -> None:
    memory, look = FeatureCache(tmp_path, "a"), Looks()
    memory(images(3), look)
    database = sqlite3.connect(memory.path)
    with database:
        database.execute(
            "update seen set features = zeroblob(length(features)) where image = ?",
            (digest(images(3)[1]),),
        )
    database.close()
    assert torch.equal(memory(images(3), look)[0], Looks()(images(3))[0])
    assert look.seen == 4


@pytest.mark.parametrize("told", ["[[112, 8", "7", "[7]", "[]"])
def test_a_damaged_description_costs_a_pass_not_a_training(tmp_path: Path, told: str) -> None:
    memory, look = FeatureCache(tmp_path, "a"), Looks()
    memory(images(3), look)
    database = sqlite3.connect(memory.path)
    with database:
        database.execute("update about set shapes = ?", (told,))
    database.close()
    assert torch.equal(memory(images(3), look)[0], Looks()(images(3))[0])
    assert look.seen == 6


def test_the_file_of_something_else_is_not_taken(tmp_path: Path) -> None:
    """As after a collision of the short names, or a copied file."""
    one, other = FeatureCache(tmp_path, "a"), FeatureCache(tmp_path, "b")
    one(images(3), Looks())
    one.path.rename(other.path)
    assert torch.equal(other(images(3), Looks(5.0))[0], Looks(5.0)(images(3))[0])


def test_a_full_disk_says_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FeatureCache(tmp_path, "a")
    memory(images(1), Looks())
    connect = sqlite3.connect

    def tiny(*arguments: object, **named: object) -> sqlite3.Connection:
        database = connect(*arguments, **named)
        database.execute("pragma max_page_count = 8")
        return database

    monkeypatch.setattr(sqlite3, "connect", tiny)
    with pytest.raises(UserError, match=r"features can't be kept \(.*full\); free some space"):
        memory(images(500, seed=1), Looks())
    monkeypatch.undo()
    look = Looks()
    memory(images(1), look)
    assert look.seen == 0  # what was kept before is still there


def test_a_cache_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file: can't create this folder .*; choose another place"):
        FeatureCache(tmp_path / "file", "a")
