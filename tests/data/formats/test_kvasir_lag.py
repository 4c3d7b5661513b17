"""Hyper-Kvasir and LAG, in small."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import stripes, write_images

from igd.data.formats.kvasir_lag import (
    HYPER_KVASIR,
    LAG,
    MedicalSet,
    differences,
    find_medical_set,
    read_medical_set,
)
from igd.data.reading import read_dataset
from igd.errors import UserError

SMALL_KVASIR = replace(
    HYPER_KVASIR,
    normal=dict(zip(HYPER_KVASIR.normal, (6, 1, 5), strict=True)),
    anomalous=dict.fromkeys(HYPER_KVASIR.anomalous, 4),
    train=7,
    test=3,
)
SMALL_LAG = replace(
    LAG,
    normal=dict.fromkeys(LAG.normal, 8),
    anomalous=dict.fromkeys(LAG.anomalous, 3),
    train=5,
    test=3,
)


def write(folder: Path, published: MedicalSet) -> Path:
    for name, count in {**published.normal, **published.anomalous}.items():
        write_images(folder / name, stripes(count))
    if published.masks:
        write_images(folder / published.masks, stripes(sum(published.anomalous.values())))
    return folder


def test_the_papers_numbers() -> None:
    assert (HYPER_KVASIR.train, HYPER_KVASIR.test, sum(HYPER_KVASIR.anomalous.values())) == (
        1600,
        500,
        1000,
    )
    assert sum(HYPER_KVASIR.normal.values()) >= 1600 + 500
    assert (LAG.train, LAG.test, sum(LAG.anomalous.values())) == (2343, 800, 1711)
    assert sum(LAG.normal.values()) == 2343 + 800


@pytest.mark.parametrize(
    ("published", "expected"), [(SMALL_KVASIR, (7, 3, 4)), (SMALL_LAG, (5, 3, 3))]
)
def test_splits(tmp_path: Path, published: MedicalSet, expected: tuple[int, int, int]) -> None:
    folder = write(tmp_path, published)
    assert differences(folder, published) == []
    dataset = read_medical_set(folder, published)
    found = Counter((sample.split, sample.label) for sample in dataset.samples)
    assert (found["train", 0], found["test", 0], found["test", 1]) == expected
    assert all(
        (sample.mask is not None) == bool(sample.label and published.masks)
        for sample in dataset.samples
    )
    assert read_medical_set(folder, published).samples == dataset.samples
    assert find_medical_set(folder) is {"hyper-kvasir": HYPER_KVASIR, "lag": LAG}[published.name]


def test_differences_are_listed_one_by_one(tmp_path: Path) -> None:
    folder = write(tmp_path, SMALL_KVASIR)
    cecum, ileum, views = (folder / name for name in SMALL_KVASIR.normal)
    (cecum / "003.png").unlink()
    (ileum / "000.png").unlink()
    ileum.rmdir()
    write_images(views, stripes(7))
    masks = folder / "segmented-images" / "masks"
    (masks / "001.png").rename(masks / "other.png")
    assert differences(folder, SMALL_KVASIR) == [
        "labeled-images/lower-gi-tract/anatomical-landmarks/cecum: 5 images instead of 6, 1 are "
        "missing",
        "labeled-images/lower-gi-tract/anatomical-landmarks/ileum: no such folder, 1 images are "
        "missing",
        "labeled-images/lower-gi-tract/quality-of-mucosal-views/bbps-2-3: 7 images instead of 5, "
        "2 are too many",
        "segmented-images/masks: no mask of 001",
        "segmented-images/masks: other is the mask of no image",
    ]
    with pytest.raises(
        UserError,
        match=r"is not hyper-kvasir as published: .*cecum: 5 images instead of 6.*unpack it again",
    ):
        read_medical_set(folder, SMALL_KVASIR)


def test_a_part_of_a_published_set_is_recognised_and_refused(tmp_path: Path) -> None:
    write_images(tmp_path / "non_glaucoma" / "image", stripes(3))
    says = (
        r"is not lag as published: .*: 3 images instead of 3,143, 3,140 are missing; "
        r".*: no such folder, 1,711 images are miss"
    )
    with pytest.raises(UserError, match=says):
        read_dataset(tmp_path)
