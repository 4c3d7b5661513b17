"""Hyper-Kvasir and LAG as they are published, in the paper's numbers.

The paper gives counts and no list of files. Which normal images are for training is drawn here,
once and for all, and the same on every machine; the normal images of Hyper-Kvasir are those of
three folders without findings, more than the paper uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from igd.data.dataset import Dataset
from igd.data.decoding import find_images
from igd.data.sample import Sample
from igd.errors import UserError

# Of the draw of the training images; never the user's, so that all results share one test set.
SPLIT_SEED = 0


@dataclass(frozen=True)
class MedicalSet:
    """Where the images of a published set lie, how many there are, and how many the paper uses."""

    name: str
    normal: dict[str, int]  # folder: images published in it
    anomalous: dict[str, int]  # the same, all of them test images
    masks: str | None  # folder of their masks, under the same names
    train: int  # normal images to learn from
    test: int  # normal images to test on


LOWER = "labeled-images/lower-gi-tract"
HYPER_KVASIR = MedicalSet(
    "hyper-kvasir",
    {
        f"{LOWER}/anatomical-landmarks/cecum": 1009,
        f"{LOWER}/anatomical-landmarks/ileum": 9,
        f"{LOWER}/quality-of-mucosal-views/bbps-2-3": 1148,
    },
    {"segmented-images/images": 1000},
    "segmented-images/masks",
    train=1600,
    test=500,
)
LAG = MedicalSet(
    "lag",
    {"non_glaucoma/image": 3143},
    {"suspicious_glaucoma/image": 1711},
    None,
    train=2343,
    test=800,
)
MEDICAL_SETS = (HYPER_KVASIR, LAG)


def find_medical_set(path: Path) -> MedicalSet | None:
    """The set whose folders these are, complete or not."""
    for published in MEDICAL_SETS:
        if any(
            (path / Path(folder).parts[0]).is_dir()
            for folder in (*published.normal, *published.anomalous)
        ):
            return published
    return None


def differences(path: Path, published: MedicalSet) -> list[str]:
    """What is missing from a set, or too much in it, a line each; empty where all is as
    published.
    """
    found = []
    masks = {published.masks: sum(published.anomalous.values())} if published.masks else {}
    for folder, expected in {**published.normal, **published.anomalous, **masks}.items():
        if not (path / folder).is_dir():
            found.append(f"{folder}: no such folder, {expected:,} images are missing")
            continue
        count = len(_images(path / folder))
        if count != expected:
            what = (
                f"{expected - count:,} are missing"
                if count < expected
                else f"{count - expected:,} are too many"
            )
            found.append(f"{folder}: {count:,} images instead of {expected:,}, {what}")
    if published.masks:
        drawn = {mask.stem for mask in _images(path / published.masks)}
        shown = {image.stem for folder in published.anomalous for image in _images(path / folder)}
        found += [f"{published.masks}: no mask of {stem}" for stem in sorted(shown - drawn)]
        found += [
            f"{published.masks}: {stem} is the mask of no image" for stem in sorted(drawn - shown)
        ]
    return found


def read_medical_set(path: Path, published: MedicalSet) -> Dataset:
    """The paper's training and test images, or an error that lists what differs from the published
    set.
    """
    wrong = differences(path, published)
    if wrong:
        shown = "; ".join(wrong[:8]) + (f"; and {len(wrong) - 8} more" if len(wrong) > 8 else "")
        raise UserError(
            f"{path}: is not {published.name} as published: {shown}; download and unpack it again"
        )
    import torch  # here, so that evaluating an exported model does without it

    from igd.rng import generator

    normal = [image for folder in published.normal for image in _images(path / folder)]
    order = torch.randperm(len(normal), generator=generator(SPLIT_SEED, published.name)).tolist()
    train = sorted(order[: published.train])
    test = sorted(order[published.train : published.train + published.test])
    masks = {mask.stem: mask for mask in _images(path / published.masks)} if published.masks else {}
    samples = [
        *(Sample(str(normal[number]), normal[number], split="train") for number in train),
        *(Sample(str(normal[number]), normal[number]) for number in test),
        *(
            Sample(str(image), image, "anomalous", 1, masks.get(image.stem))
            for folder in published.anomalous
            for image in _images(path / folder)
        ),
    ]
    return Dataset(published.name, samples, str(path))


def _images(folder: Path) -> list[Path]:
    return find_images(folder) if folder.is_dir() and any(folder.iterdir()) else []
