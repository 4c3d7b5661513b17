"""One way in: whatever people have, as a data set."""

from __future__ import annotations

from pathlib import Path

from igd.data.dataset import Dataset
from igd.data.formats.cifar import is_cifar, read_cifar
from igd.data.formats.folders import read_folder
from igd.data.formats.idx import find_idx, read_idx_folder
from igd.data.formats.kvasir_lag import find_medical_set, read_medical_set
from igd.data.formats.manifest import MANIFESTS, read_manifest
from igd.data.formats.npz import read_npz
from igd.data.groups import group_by_pattern, warn_of_shared_groups
from igd.errors import UserError
from igd.files import check_readable


def read_dataset(
    path: str | Path,
    *,
    root: str | Path | None = None,
    group: str | None = None,
    group_by: str | None = None,
) -> Dataset:
    """The data set at a path, recognised by its file's name or by the folders and files in it.

    `root` is the folder that the paths of a manifest start from, in place of the manifest's own.
    Images belong together that have one value in a manifest's column `group`, or in whose names the
    regular expression `group_by` finds the same.
    """
    path = Path(path)
    if group is not None and group_by is not None:
        raise UserError("groups come from a column or from file names; give --group or --group-by")
    dataset = _read(path, root, group)
    if group_by is not None:
        dataset = group_by_pattern(dataset, group_by)
    warn_of_shared_groups(dataset)
    return dataset


def _read(path: Path, root: str | Path | None, group: str | None) -> Dataset:
    if not path.exists():
        raise UserError(f"{path}: no such folder or file")
    check_readable(path)
    if path.is_file() and path.suffix.lower() in MANIFESTS:
        return read_manifest(path, Path(root) if root else None, group)
    if root:
        raise UserError(
            f"{path}: a root ({root}) is for the paths in a manifest ({' '.join(MANIFESTS)}), "
            f"which this is not"
        )
    if group is not None:
        raise UserError(
            f"{path}: a column ({group}) is for a manifest ({' '.join(MANIFESTS)}), which this is "
            f"not; group by a pattern in file names instead (--group-by)"
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
