"""The data sets of the paper, as files people have: which classes they hold, and a class's training and test images."""

from __future__ import annotations

import hashlib
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from igd.benchmark.protocols import Split
from igd.data.samples import NORMAL, Sample
from igd.errors import UserError

DIGITS = tuple("0123456789")
CIFAR10 = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MVTEC = (
    *("bottle", "hazelnut", "capsule", "metal_nut", "leather", "pill", "wood", "carpet"),
    *("tile", "grid", "cable", "transistor", "toothbrush", "screw", "zipper"),
)
ARRAYS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True)
class DataSet(ABC):
    """One data set: its classes in the paper's order, and what the paper measures on it."""

    name: str
    classes: tuple[str, ...]  # each in turn is the normal one
    metrics: tuple[str, ...] = ("image_auroc",)

    @abstractmethod
    def locate(self, path: Path) -> Path:
        """The file or folder itself, where `path` may be a folder that holds it."""

    def present(self, path: Path) -> tuple[str, ...]:
        """The classes that are there."""
        return self.classes if path.exists() else ()

    @abstractmethod
    def fingerprint(self, path: Path) -> str:
        """What tells this copy of the data from another, without reading all of it."""

    @abstractmethod
    def split(self, path: Path, normal: str) -> Split:
        """Training and test images with this class as the normal one."""


class Labelled(DataSet):
    """An .npz file of arrays x_train, y_train, x_test and y_test: one class is normal, the others are anomalous."""

    def locate(self, path: Path) -> Path:
        file = path / f"{self.name.replace('-', '_')}.npz" if path.is_dir() else path
        if not file.is_file():
            raise UserError(f"{file}: no such file; --data names the .npz file of {self.name} ({', '.join(ARRAYS)})")
        return file

    def fingerprint(self, path: Path) -> str:
        try:
            with zipfile.ZipFile(path) as archive:
                return _digest((each.filename, each.CRC, each.file_size) for each in archive.infolist())
        except (zipfile.BadZipFile, OSError) as error:
            raise UserError(f"{path}: not an .npz file ({error}); it holds the arrays {', '.join(ARRAYS)}") from None

    def split(self, path: Path, normal: str) -> Split:
        number = self.classes.index(normal)
        x_train, y_train, x_test, y_test = _arrays(path)
        train = [Sample(f"train {n}", x_train[n], split="train") for n in np.flatnonzero(y_train == number)]
        if not train:
            raise UserError(f"{path}: no training image has label {number}; is this {self.name}?")
        test = [
            Sample(f"test {n}", image, NORMAL if label == number else self.classes[label], int(label != number))
            for n, (image, label) in enumerate(zip(x_test, y_test, strict=True))
        ]
        return Split(train, test)


class Categories(DataSet):
    """A folder of categories in MVTec's layout; each has its own normal and anomalous images."""

    def locate(self, path: Path) -> Path:
        if not path.is_dir():
            raise UserError(f"{path}: no such folder; --data names the folder with the categories of {self.name}")
        if not self.present(path):
            known = ", ".join(self.classes[:3])
            raise UserError(f"{path}: holds no category of {self.name} ({known}, ...), each with a folder train/good")
        return path

    def present(self, path: Path) -> tuple[str, ...]:
        return tuple(name for name in self.classes if (path / name / "train" / "good").is_dir())

    def fingerprint(self, path: Path) -> str:
        return _folder_digest(path, self.present(path))

    def split(self, path: Path, normal: str) -> Split:
        return _folder_split(path / normal)


class OneFolder(DataSet):
    """One category in MVTec's layout: train/good, test/good and a folder of anomalous test images."""

    def locate(self, path: Path) -> Path:
        if not (path / "train" / "good").is_dir():
            raise UserError(
                f"{path}: has no folder train/good; arrange {self.name} as train/good, test/good and test/{self.classes[0]}"
            )
        return path

    def fingerprint(self, path: Path) -> str:
        return _folder_digest(path, ("train", "test"))

    def split(self, path: Path, normal: str) -> Split:
        return _folder_split(path)


DATA: dict[str, DataSet] = {
    each.name: each
    for each in (
        Labelled("mnist", DIGITS),
        Labelled("fashion-mnist", DIGITS),
        Labelled("cifar10", CIFAR10),
        Categories("mvtec", MVTEC, ("image_auroc", "accuracy_at_half", "pixel_auroc_per_image")),
        OneFolder("hyper-kvasir", ("polyp",)),
        OneFolder("lag", ("glaucoma",)),
    )
}


def find_data(name: str) -> DataSet:
    if name not in DATA:
        raise UserError(f"no data set is called {name!r}; there are {', '.join(DATA)}")
    return DATA[name]


def find_classes(data: DataSet, path: Path, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The classes to use, by name or number; all that are there where none are asked for."""
    there = data.present(path)
    if not asked:
        return there
    chosen = [data.classes[int(name)] if name.isdecimal() and int(name) < len(data.classes) else name for name in asked]
    for name in chosen:
        if name not in there:
            raise UserError(f"{data.name} has no class {name!r} in {path}; there are {', '.join(there)}")
    return tuple(dict.fromkeys(chosen))


def _arrays(path: Path) -> list[Any]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = [stored[name] for name in ARRAYS]
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: can't be read ({error}); it must hold the arrays {', '.join(ARRAYS)}") from None
    x_train, y_train, x_test, y_test = arrays
    for images, labels, name in ((x_train, y_train, "train"), (x_test, y_test, "test")):
        shaped = images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)
        fits = images.dtype == np.uint8 and shaped and labels.shape == images.shape[:1] and len(labels) > 0
        if not fits or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
            raise UserError(
                f"{path}: x_{name} is {images.dtype} {images.shape}, y_{name} is {labels.dtype} {labels.shape}; "
                "images must be uint8 (n, h, w[, 3]) and labels n integers from 0 to 9"
            )
    return arrays


def _folder_split(folder: Path) -> Split:
    from igd.data.images import find_images
    from igd.data.sources import labelled_samples

    train = [Sample(str(path), path, split="train") for path in find_images(folder / "train" / "good")]
    return Split(train, labelled_samples(folder))


def _folder_digest(path: Path, folders: Sequence[str]) -> str:
    found = (file for folder in folders for file in sorted((path / folder).rglob("*")) if file.is_file())
    return _digest((file.relative_to(path).as_posix(), file.stat().st_size) for file in found)


def _digest(parts: Any) -> str:
    return hashlib.sha256(repr(list(parts)).encode()).hexdigest()[:16]
