"""A data set: samples under one name, and what was done to them since they were read."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from igd.data.sample import Sample
from igd.errors import UserError


@dataclass(frozen=True)
class Step:
    """A protocol that a data set went through; a model's provenance holds it as JSON."""

    protocol: str  # one-class, fraction or contamination
    value: str | float  # the class that is normal, or a share
    seed: int | None = None  # None: nothing was drawn
    moved: list[str] = field(default_factory=list)  # names of the test images that went to training

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Dataset:
    """Images to learn from and images to test on; no image is in it twice."""

    name: str
    samples: list[Sample]
    described: str  # where it is, for error messages and a model's provenance
    classes: tuple[
        str, ...
    ] = ()  # to choose the normal one from; empty where it is known which samples are normal
    steps: tuple[Step, ...] = ()
    grouped_by: str = ""  # how its samples got their groups; empty: they have none

    def __post_init__(self) -> None:
        _check_unique(self)

    @property
    def train(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.split == "train"]

    @property
    def test(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.split == "test"]

    def name_of(self, sample: Sample) -> str:
        """What a sample is called within the data set, wherever that lies and on whichever
        system.
        """
        return sample.identifier.removeprefix(self.described).replace(os.sep, "/").lstrip("/")

    def training_samples(self) -> list[Sample]:
        """The images to learn from, or an error that says why there are none."""
        self._check_classes()
        if not self.train:
            raise UserError(
                f"{self.described}: no training images {self._holds()}; give a folder of normal "
                f"images"
            )
        moved = {name for step in self.steps for name in step.moved}
        stray = [
            sample for sample in self.train if sample.label and self.name_of(sample) not in moved
        ]
        if stray:
            raise UserError(
                f"{self.described}: {len(stray)} of its training images are labelled anomalous, "
                f"{stray[0].identifier} among "
                "them, and training takes normal ones; make them test images, or choose the "
                "normal class (--normal-class)"
            )
        return self.train

    def test_samples(self) -> list[Sample]:
        """The labelled test images, of both kinds, or an error that says what is missing."""
        self._check_classes()
        if not self.test:
            raise UserError(
                f"{self.described}: no labelled test images {self._holds()}; "
                "put them into test/good and test/<defect>, or list them in a manifest"
            )
        if len({sample.label for sample in self.test}) < 2:
            missing = "normal" if self.test[0].label else "anomalous"
            raise UserError(
                f"{self.described}: none of its {len(self.test)} test images is {missing}; AUC "
                f"needs both kinds"
            )
        return self.test

    def _check_classes(self) -> None:
        if self.classes:
            listed = ", ".join(self.classes)
            raise UserError(
                f"{self.described}: has the classes {listed}; say which one is normal "
                f"(--normal-class)"
            )

    def _holds(self) -> str:
        kinds = Counter(f"{sample.split} images of kind {sample.kind!r}" for sample in self.samples)
        return (
            "(it holds "
            + ", ".join(f"{count} {name}" for name, count in kinds.most_common(3))
            + ")"
            if kinds
            else "in it"
        )


def _check_unique(dataset: Dataset) -> None:
    (identifier, times), *_ = Counter(sample.identifier for sample in dataset.samples).most_common(
        1
    ) or [("", 0)]
    if times > 1:
        raise UserError(
            f"{dataset.described}: {identifier} is in it {times} times; list every image once, in "
            f"one split"
        )
