"""The paper's data sets and folders of the user's own: which classes they hold, and what a run
learns from and is tested on.
"""

from __future__ import annotations

import hashlib
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from igd.benchmark.run import Protocol
from igd.data.dataset import Dataset
from igd.data.formats.cifar import is_cifar
from igd.data.formats.folders import categories, is_category
from igd.data.formats.idx import find_idx, read_idx
from igd.data.formats.kvasir_lag import find_medical_set
from igd.data.formats.npz import read_arrays
from igd.data.protocols import apply_protocols
from igd.data.reading import read_dataset
from igd.errors import UserError

DIGITS = tuple("0123456789")
CIFAR10 = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MVTEC = (
    *("bottle", "hazelnut", "capsule", "metal_nut", "leather", "pill", "wood", "carpet"),
    *("tile", "grid", "cable", "transistor", "toothbrush", "screw", "zipper"),
)


@dataclass(frozen=True)
class BenchmarkData(ABC):
    """One data set: its classes in the paper's order, and what the paper measures on it."""

    name: str
    classes: tuple[str, ...]  # each in turn is the normal one; none: whatever the folder holds
    metrics: tuple[str, ...] = ("image_auroc",)
    test_images: int | None = None  # as published, where that is one number for all classes
    first_labels: str = ""  # of the published test images, where classes have numbers
    own_copies: bool = False  # each class is a data set by itself, with a fingerprint of its own

    small: ClassVar[bool] = False  # whether images are known to have at most 64 pixels a side

    @abstractmethod
    def locate(self, path: Path) -> Path:
        """The file or folder itself, where `path` may be a folder that holds it."""

    def present(self, path: Path) -> tuple[str, ...]:
        """The classes that are there."""
        return self.classes if path.exists() else ()

    def fingerprint(self, path: Path) -> str:
        """What tells this copy of the data from another, without reading all of it."""
        found = (file for file in sorted(path.rglob("*")) if file.is_file())
        return _digest((file.relative_to(path).as_posix(), file.stat().st_size) for file in found)

    def check(self, path: Path) -> None:
        """Refuse another data set's labels: MNIST's files and Fashion MNIST's have the same names
        and sizes.
        """
        labels = _test_labels(path) if self.first_labels else ""
        for other in DATA.values():
            if other is not self and other.first_labels and labels.startswith(other.first_labels):
                raise UserError(
                    f"{path}: seems to be {other.name}, by its first test labels "
                    f"({' '.join(other.first_labels)}), not "
                    f"{self.name}; name the suite {other.name}, or give the data of {self.name} "
                    f"(--data)"
                )

    @abstractmethod
    def read(self, path: Path, normal: str, protocol: Protocol, seed: int) -> Dataset:
        """Training and test images with this class as the normal one, under a protocol."""


class Labelled(BenchmarkData):
    """Images of ten classes, one of which is normal: an .npz file, or a folder as the data set is
    published.
    """

    small = True

    def locate(self, path: Path) -> Path:
        file = path / f"{self.name.replace('-', '_')}.npz"
        if file.is_file():
            return file
        if not path.exists():
            raise UserError(
                f"{path}: no such file or folder; --data names the .npz file of {self.name}, or "
                f"its folder"
            )
        if path.is_dir() and not (find_idx(path) or is_cifar(path)):
            raise UserError(
                f"{path}: holds neither {file.name} nor the files of {self.name} as published; "
                f"--data names the folder that does, or the .npz file"
            )
        return path

    def fingerprint(self, path: Path) -> str:
        if path.is_dir():
            return super().fingerprint(path)
        try:
            with zipfile.ZipFile(path) as archive:
                return _digest(
                    (each.filename, each.CRC, each.file_size) for each in archive.infolist()
                )
        except (zipfile.BadZipFile, OSError) as error:
            raise UserError(
                f"{path}: not an .npz file ({error}); --data names the .npz file of {self.name}"
            ) from None

    def read(self, path: Path, normal: str, protocol: Protocol, seed: int) -> Dataset:
        return _changed(read_dataset(path), protocol, seed, str(self.classes.index(normal)))


class Categories(BenchmarkData):
    """A folder of categories in MVTec's layout; each has its own normal and anomalous images."""

    def locate(self, path: Path) -> Path:
        if not path.is_dir():
            raise UserError(
                f"{path}: no such folder; --data names the folder with the categories of "
                f"{self.name}"
            )
        if not self.present(path):
            known = ", ".join(self.classes[:3])
            raise UserError(
                f"{path}: holds no category of {self.name} ({known}, ...), each with a folder "
                f"train/good"
            )
        return path

    def present(self, path: Path) -> tuple[str, ...]:
        return tuple(name for name in self.classes if is_category(path / name))

    def read(self, path: Path, normal: str, protocol: Protocol, seed: int) -> Dataset:
        return _changed(read_dataset(path / normal), protocol, seed)


class Field(BenchmarkData):
    """Every set of a folder in MVTec's layout, with masks or without; the paper has none of them.

    A set is known by its own files, so that one more beside it changes nothing, and sets of
    several folders may share a store.
    """

    def locate(self, path: Path) -> Path:
        if not self.present(path):
            raise UserError(
                f"{path}: holds no data set in MVTec's layout; --data names a folder of folders, "
                f"each with train/good and test"
            )
        return path

    def present(self, path: Path) -> tuple[str, ...]:
        return tuple(folder.name for folder in categories(path))

    def read(self, path: Path, normal: str, protocol: Protocol, seed: int) -> Dataset:
        return _changed(read_dataset(path / normal), protocol, seed)


class OneFolder(BenchmarkData):
    """One folder as it is published, or in MVTec's layout."""

    def locate(self, path: Path) -> Path:
        published = find_medical_set(path) if path.is_dir() else None
        if not path.is_dir() or not (
            is_category(path) or (published and published.name == self.name)
        ):
            raise UserError(
                f"{path}: is not {self.name}; --data names its folder as published, or one with "
                f"train/good, test/good and "
                f"test/{self.classes[0]}"
            )
        return path

    def read(self, path: Path, normal: str, protocol: Protocol, seed: int) -> Dataset:
        return _changed(read_dataset(path), protocol, seed)


DATA: dict[str, BenchmarkData] = {
    each.name: each
    for each in (
        Labelled("mnist", DIGITS, test_images=10_000, first_labels="7210414959"),
        Labelled("fashion-mnist", DIGITS, test_images=10_000, first_labels="9211614657"),
        Labelled("cifar10", CIFAR10, test_images=10_000, first_labels="3880661631"),
        Categories("mvtec", MVTEC, ("image_auroc", "accuracy_at_half", "pixel_auroc_per_image")),
        OneFolder("hyper-kvasir", ("polyp",)),
        OneFolder("lag", ("glaucoma",)),
        Field("field", (), own_copies=True),
    )
}


def find_data(name: str) -> BenchmarkData:
    if name not in DATA:
        raise UserError(f"no data set is called {name!r}; there are {', '.join(DATA)}")
    return DATA[name]


def find_classes(data: BenchmarkData, path: Path, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The classes to use, by name or number; all that are there where none are asked for."""
    there = data.present(path)
    if not asked:
        return there
    chosen = [
        data.classes[int(name)] if name.isdecimal() and int(name) < len(data.classes) else name
        for name in asked
    ]
    for name in chosen:
        if name not in there:
            raise UserError(
                f"{data.name} has no class {name!r} in {path}; there are {', '.join(there)}"
            )
    return tuple(dict.fromkeys(chosen))


def _test_labels(path: Path) -> str:
    """All test labels one after another, of an .npz file or of IDX files; other folders are told by
    their files' names.
    """
    file = find_idx(path).get("y_test") if path.is_dir() else None
    arrays = (
        {"y_test": read_idx(file)}
        if file
        else {}
        if path.is_dir()
        else read_arrays(path, ("y_test",))
    )
    return "".join(map(str, arrays["y_test"].ravel())) if arrays else ""


def _changed(
    dataset: Dataset, protocol: Protocol, seed: int, normal_class: str | None = None
) -> Dataset:
    return apply_protocols(
        dataset,
        normal_class=normal_class,
        fraction=protocol.training_share,
        contaminated=protocol.contamination,
        seed=seed,
    )


def _digest(parts: Any) -> str:
    return hashlib.sha256(repr(list(parts)).encode()).hexdigest()[:16]
