"""One way in: whatever people have, as a data set."""

from __future__ import annotations

from pathlib import Path

from igd.data.dataset import Dataset
from igd.data.formats.cifar import is_cifar, read_cifar
from igd.data.formats.folders import categories, read_folder
from igd.data.formats.idx import find_idx, read_idx_folder
from igd.data.formats.manifest import MANIFESTS, read_manifest
from igd.data.formats.medical import find_medical_set, read_medical_set
from igd.data.formats.npz import read_npz
from igd.errors import UserError


def read_dataset(path: str | Path, *, root: str | Path | None = None) -> Dataset:
    """The data set at a path, recognised by its file's name or by the folders and files in it.

    `root` is the folder that the paths of a manifest start from, in place of the manifest's own.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"{path}: no such folder or file")
    if path.is_file() and path.suffix.lower() in MANIFESTS:
        return read_manifest(path, Path(root) if root else None)
    if root:
        raise UserError(
            f"{path}: a root ({root}) is for the paths in a manifest ({' '.join(MANIFESTS)}), "
            f"which this is not"
        )
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    if path.is_file():
        raise UserError(
            f"{path}: is not a data set; igd reads folders of images, {' '.join(MANIFESTS)} and "
            f".npz files"
        )
    if find_idx(path):
        return read_idx_folder(path)
    if is_cifar(path):
        return read_cifar(path)
    published = find_medical_set(path)
    return read_medical_set(path, published) if published else read_folder(path)


def read_datasets(path: str | Path, *, root: str | Path | None = None) -> dict[str, Dataset]:
    """Every data set at a path, by name: the categories of a folder of them, or the one that is
    there.
    """
    found = [read_dataset(each) for each in categories(Path(path))] or [
        read_dataset(path, root=root)
    ]
    return {dataset.name: dataset for dataset in found}
