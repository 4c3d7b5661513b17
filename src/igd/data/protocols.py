"""Experiments as changes to a data set: one class as normal, fewer training images, anomalies among
them.

Each protocol takes a data set and gives a new one that remembers the step. Draws depend on the seed
and on the data set alone, and a larger share holds the smaller ones: the 20 % are among the 60 %.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from igd.data.dataset import Dataset, Step
from igd.data.sample import Sample
from igd.errors import DataWarning, UserError

ONE_CLASS, FRACTION, CONTAMINATION = "one-class", "fraction", "contamination"


def one_class(dataset: Dataset, normal_class: str) -> Dataset:
    """One class normal, the others anomalous: train on its training images, test on all test
    images.
    """
    kinds = dataset.classes or tuple(sorted({sample.kind for sample in dataset.samples}))
    if normal_class not in kinds:
        raise UserError(
            f"{dataset.described}: no class is called {normal_class!r}; there are "
            f"{', '.join(kinds)}"
        )
    samples = [
        replace(
            sample,
            label=int(sample.kind != normal_class),
            mask=None if sample.kind == normal_class else sample.mask,
        )
        for sample in dataset.samples
        if sample.split == "test" or sample.kind == normal_class
    ]
    return replace(
        dataset, samples=samples, classes=(), steps=(*dataset.steps, Step(ONE_CLASS, normal_class))
    )


def training_fraction(dataset: Dataset, share: float, seed: int = 0) -> Dataset:
    """A share of the training images, and all test images."""
    if not 0 < share <= 1:
        raise UserError(
            f"a fraction of {share:g} is impossible; give the share of the training images to "
            f"use, such as 0.2"
        )
    kept = _draw(dataset.training_samples(), share, seed, FRACTION)
    samples = [
        sample for sample in dataset.samples if sample.split == "test" or sample.identifier in kept
    ]
    return replace(dataset, samples=samples, steps=(*dataset.steps, Step(FRACTION, share, seed)))


def contamination(dataset: Dataset, share: float, seed: int = 0) -> Dataset:
    """A share of the anomalous test images moved to the training images, unseen by whoever trains
    on them.
    """
    if not 0 < share < 1:
        raise UserError(
            f"a contamination of {share:g} is impossible; give the share of test anomalies to "
            f"move, such as 0.1"
        )
    dataset.training_samples()
    anomalous = [sample for sample in dataset.test_samples() if sample.label]
    drawn = _draw(anomalous, share, seed, CONTAMINATION)
    if len(drawn) == len(anomalous):
        raise UserError(
            f"{dataset.described}: a contamination of {share:g} would take all of its "
            f"{len(anomalous)} anomalous test images; "
            "give a smaller share"
        )
    samples = [
        replace(sample, split="train") if sample.identifier in drawn else sample
        for sample in dataset.samples
    ]
    moved = [dataset.name_of(sample) for sample in anomalous if sample.identifier in drawn]
    return replace(
        dataset, samples=samples, steps=(*dataset.steps, Step(CONTAMINATION, share, seed, moved))
    )


def apply_protocols(
    dataset: Dataset,
    *,
    normal_class: str | None = None,
    fraction: float = 1,
    contaminated: float = 0,
    seed: int = 0,
) -> Dataset:
    """The protocols that are asked for, in the paper's order."""
    if normal_class is not None:
        dataset = one_class(dataset, normal_class)
    if fraction != 1:
        dataset = training_fraction(dataset, fraction, seed)
    if contaminated != 0:
        dataset = contamination(dataset, contaminated, seed)
    return dataset


def repeat_for_testing(dataset: Dataset, recorded: Any) -> Dataset:
    """The test set that belongs to a model, by the steps in its provenance: what it was trained on
    is not in it.
    """
    for step in _steps(recorded):
        kinds = {sample.kind for sample in dataset.samples}
        if step.protocol == ONE_CLASS and (dataset.classes or step.value in kinds):
            dataset = one_class(dataset, str(step.value))
        elif step.protocol == CONTAMINATION:
            dataset = _without(dataset, set(step.moved))
    return dataset


def warn_of_learnt_anomalies(dataset: Dataset, recorded: Any) -> None:
    """Say that anomalies which a model learnt from are among those it is tested on."""
    moved = {name for step in _steps(recorded) for name in step.moved}
    tested = moved & {dataset.name_of(sample) for sample in dataset.test}
    if tested:
        warnings.warn(
            f"{dataset.described}: the model learnt from {len(tested)} of the anomalous test "
            f"images ({min(tested)} for one), by --contamination; without protocols of your own, "
            f"they are left out",
            DataWarning,
            stacklevel=2,
        )


def _without(dataset: Dataset, moved: set[str]) -> Dataset:
    lost = moved - {dataset.name_of(sample) for sample in dataset.test}
    if lost:
        raise UserError(
            f"{dataset.described}: {len(lost)} of the {len(moved)} anomalous images that the "
            f"model was trained on are not "
            f"among its test images, {min(lost)} for one; give the data set it was trained with, "
            f"or --contamination 0"
        )
    kept = [
        sample
        for sample in dataset.samples
        if sample.split == "train" or dataset.name_of(sample) not in moved
    ]
    return replace(dataset, samples=kept)


def _steps(recorded: Any) -> list[Step]:
    """Steps from a model file, which may say anything."""
    try:
        steps = [Step(**each) for each in recorded or []]
        valid = all(
            isinstance(name, str) for step in steps for name in (step.protocol, *step.moved)
        )
    except TypeError:
        valid = False
    if not valid:
        raise UserError(
            "the model's record of its data protocol makes no sense; the file is damaged"
        )
    return steps


def _draw(samples: list[Sample], share: float, seed: int, purpose: str) -> set[str]:
    """The identifiers of a share of the samples, at least one; larger shares hold smaller ones."""
    import torch  # here, so that evaluating an exported model does without it

    from igd.rng import generator

    order = torch.randperm(len(samples), generator=generator(seed, purpose)).tolist()
    return {samples[number].identifier for number in order[: max(1, round(share * len(samples)))]}
