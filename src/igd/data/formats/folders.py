"""Folders of images: plain ones, MVTec's layout, and normal/ beside abnormal/."""

from __future__ import annotations

from pathlib import Path

from igd.data.dataset import Dataset
from igd.data.decoding import find_files, find_images
from igd.data.frames import frame_of
from igd.data.labels import NORMAL_NAMES
from igd.data.sample import Sample, Split
from igd.errors import UserError

MASKS = "ground_truth"
NOT_KINDS = (MASKS, "train")  # folders beside those of test images
EVERY = 5  # of the images in normal/, one in so many is kept for testing where nothing says which


def read_folder(path: Path) -> Dataset:
    """The data set in a folder, by the names of the folders in it."""
    return Dataset(path.resolve().name, _samples(path), str(path))


def categories(path: Path) -> list[Path]:
    """The folders in MVTec's layout that lie in this folder, which is not in that layout itself."""
    if not path.is_dir() or is_category(path):
        return []
    return [child for child in _folders(path) if is_category(child)]


def is_category(path: Path) -> bool:
    """Whether a folder has MVTec's train/good or test (or train/normal, as others call it)."""
    return (path / "test").is_dir() or any(
        (path / "train" / name).is_dir() for name in NORMAL_NAMES
    )


def _samples(path: Path) -> list[Sample]:
    if is_category(path):
        return [*_training_images(path), *_test_images(path / "test", path / MASKS)]
    if (path / "normal").is_dir() and (path / "abnormal").is_dir():
        return _normal_and_abnormal(path)
    found = categories(path)
    if found:
        raise UserError(
            f"{path}: holds several data sets; choose one: "
            f"{', '.join(child.name for child in found)}"
        )
    names = {child.name for child in _folders(path)} - {MASKS}
    if len(names) > 1 and not names.isdisjoint(NORMAL_NAMES):
        return _test_images(path, path / MASKS if (path / MASKS).is_dir() else path.parent / MASKS)
    return [_sample(image, split="train") for image in find_images(path)]


def _training_images(category: Path) -> list[Sample]:
    folders = [
        category / "train" / name for name in NORMAL_NAMES if (category / "train" / name).is_dir()
    ]
    return [
        _sample(image, folder.name, split="train")
        for folder in folders
        for image in find_images(folder)
    ]


def _test_images(test: Path, masks: Path) -> list[Sample]:
    """A folder of images for each kind, `good` among them."""
    if not test.is_dir():
        return []
    kinds = [folder for folder in _folders(test) if folder.name not in NOT_KINDS]
    return [sample for kind in kinds for sample in _images_of_kind(kind, masks / kind.name)]


def _images_of_kind(kind: Path, masks: Path) -> list[Sample]:
    """The test images of a folder, with the masks that have their names: `<stem>_mask.png` or
    `<stem>.png`.
    """
    drawn = {_stem(mask, masks): mask for mask in find_files(masks)} if masks.is_dir() else {}
    samples = []
    for image in find_images(kind):
        stem = _stem(image, kind)
        mask = None if kind.name in NORMAL_NAMES else drawn.get(f"{stem}_mask") or drawn.get(stem)
        samples.append(_sample(image, kind.name, mask=mask))
    return samples


def _normal_and_abnormal(path: Path) -> list[Sample]:
    """normal/ and abnormal/, where normal/ may hold train/ and test/."""
    abnormal = _images_of_kind(path / "abnormal", path / MASKS / "abnormal")
    normal = path / "normal"
    if (normal / "train").is_dir() and (normal / "test").is_dir():
        train, test = find_images(normal / "train"), find_images(normal / "test")
    else:
        images = find_images(normal)
        test = images[::EVERY]
        train = [image for number, image in enumerate(images) if number % EVERY]
    return [
        *(_sample(image, "normal", split="train") for image in train),
        *(_sample(image, "normal") for image in test),
        *abnormal,
    ]


def _sample(
    image: Path, kind: str = "good", *, mask: Path | None = None, split: Split = "test"
) -> Sample:
    return Sample(str(image), image, kind, int(kind not in NORMAL_NAMES), mask, split)


def _folders(path: Path) -> list[Path]:
    """The folders in a folder, in a stable order."""
    return sorted(
        child for child in path.iterdir() if child.is_dir() and not child.name.startswith(".")
    )


def _stem(image: Path, folder: Path) -> str:
    """Of a page, with its number: `stack#000002` of stack.tif."""
    frame, name = frame_of(image), image.relative_to(folder)
    number = f"#{frame.number:06d}" if frame else ""
    return f"{name.with_suffix('').as_posix()}{number}"
