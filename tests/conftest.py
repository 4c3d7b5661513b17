"""Small images that the tests make, and detectors trained on them in seconds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from lightning_fabric import Fabric
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file

from igd import IGD
from igd.files.tensors import checksum
from igd.progress import Progress


def stripes(count: int, side: int = 32, seed: int = 0, colour: bool = False) -> np.ndarray:
    """Normal images: vertical stripes of varying phase and contrast."""
    rng = np.random.default_rng(seed)
    phase, contrast = rng.uniform(0, 8, (count, 1, 1)), rng.uniform(60, 100, (count, 1, 1))
    wave = 128 + contrast * np.sin((np.arange(side) + phase) * 2 * np.pi / 8)
    images = np.broadcast_to(wave, (count, side, side)) + rng.normal(0, 4, (count, side, side))
    images = images.clip(0, 255).astype(np.uint8)
    return np.repeat(images[..., None], 3, axis=3) if colour else images


def spotted(images: np.ndarray, at: tuple[int, int] = (12, 20), size: int = 8) -> np.ndarray:
    """The same images with a bright square at (row, column)."""
    images = images.copy()
    images[:, at[0] : at[0] + size, at[1] : at[1] + size] = 255
    return images


def write_images(folder: Path, images: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:03d}.png")
    return folder


def write_digits(path: Path, train: dict[int, int], test: dict[int, int]) -> Path:
    """An .npz file in MNIST's shape: stripes that are turned for each class, so many of each
    class.
    """

    def images(counts: dict[int, int], shift: int) -> tuple[np.ndarray, np.ndarray]:
        made = [
            np.rot90(stripes(n, 28, shift + label), label, (1, 2)) for label, n in counts.items()
        ]
        return np.concatenate(made), np.repeat(list(counts), list(counts.values())).astype(np.uint8)

    x_train, y_train = images(train, 100)
    x_test, y_test = images(test, 200)
    np.savez(path, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    return path


def edit(
    path: Path, change_header=lambda header: None, change_tensors=lambda tensors: None
) -> Path:
    """The file with its header or its tensors changed, and the checksum that belongs to them."""
    with safe_open(path, framework="pt") as opened:
        header = json.loads(opened.metadata()["igd"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    del header["sha256"]
    change_header(header)
    change_tensors(tensors)
    header["sha256"] = checksum(header, tensors)
    save_file(tensors, path, metadata={"igd": json.dumps(header)})
    return path


class Heard(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


@pytest.fixture(scope="session")
def fabric() -> Fabric:
    return Fabric(accelerator="cpu", devices=1)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> IGD:
    """A detector of small images, trained from scratch for some seconds: once, whatever the number
    of processes that share the tests.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / "fitted.igd"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            detector = IGD(
                pretrain="scratch", combination="sum", steps=300, batch_size=32, width=8, seed=1
            )
            detector.fit(stripes(200)).save(path)
    return IGD.load(path)


@pytest.fixture(scope="session")
def fitted_large() -> IGD:
    """A detector of large images, global and local, hardly trained: for shapes and geometry, not
    for quality.
    """
    with pytest.warns(UserWarning, match="model:"):
        detector = IGD(pretrain="scratch", combination="sum", steps=2, width=2, image_size=192)
        return detector.fit(stripes(12, side=192, colour=True))


@pytest.fixture(scope="session")
def category(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A category in MVTec's layout: 32-pixel stripes, some with a bright square."""
    folder = tmp_path_factory.mktemp("data") / "stripes"
    write_images(folder / "train" / "good", stripes(60, seed=3))
    write_images(folder / "test" / "good", stripes(10, seed=4))
    write_images(folder / "test" / "spot", spotted(stripes(10, seed=5)))
    masks = spotted(np.zeros((10, 32, 32), dtype=np.uint8))
    for number, mask in enumerate(masks):
        path = folder / "ground_truth" / "spot" / f"{number:03d}_mask.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask).save(path)
    return folder


@pytest.fixture
def _own_names() -> Iterator[None]:
    """Objectives and methods to which a test gives a name lose it with the test."""
    from igd.benchmark.suites import METHODS
    from igd.method.objective import OBJECTIVES

    before = [(registry, dict(registry)) for registry in (OBJECTIVES, METHODS)]
    yield
    for registry, names in before:
        registry.clear()
        registry.update(names)


def real_data(name: str) -> Path:
    """A file of the real data sets, or a skipped test."""
    folders = [
        Path(os.environ.get("IGD_DATA", "~/.cache/igd-data")).expanduser(),
        Path(__file__).parents[2] / "shared" / "data",
    ]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"{name} is not on this machine; put it into $IGD_DATA or ~/.cache/igd-data")


@pytest.fixture(autouse=True)
def _same_rng() -> None:
    torch.manual_seed(0)
