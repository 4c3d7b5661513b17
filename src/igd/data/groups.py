"""Images that belong together, such as those of one patient or of one part.

Near copies of an image on both sides of a split make every promise too bold, so that a group stays
on one side. Its label is only compared with other labels, and never stored in a model.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd.data.dataset import Dataset
from igd.data.sources import Source
from igd.errors import DataWarning, UserError

NAMED = 3  # file names, as examples


def group_by_pattern(dataset: Dataset, pattern: str) -> Dataset:
    """The same data set, grouped by what a regular expression finds in each image's name within it:
    its one capture group or, without any, all that it matches.
    """
    expression = _compiled(pattern)
    names = [dataset.name_of(sample) for sample in dataset.samples]
    found = [expression.search(name) for name in names]
    labels = [match and match[expression.groups] for match in found]
    lost = [name for name, label in zip(names, labels, strict=True) if not label]
    if lost:
        count = "none" if len(lost) == len(names) else f"only {len(names) - len(lost)}"
        raise UserError(
            f"{dataset.described}: {pattern!r} finds a group in {count} of its {len(names)} file "
            f"names; it must in all, such as {', '.join(lost[:NAMED])} (--group-by)"
        )
    samples = [
        replace(sample, group=label) for sample, label in zip(dataset.samples, labels, strict=True)
    ]
    return replace(dataset, samples=samples, grouped_by=f"pattern {pattern}")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"{pattern!r} is no regular expression ({error}); an example: 'patient(\\d+)'"
        ) from None
    if expression.groups > 1:
        raise UserError(
            f"{pattern!r} has {expression.groups} capture groups; one says which images belong "
            f"together, and (?:...) makes the others plain"
        )
    return expression


def warn_of_shared_groups(dataset: Dataset) -> None:
    """Say where one group has images to learn from and to test on, as the test flatters then."""
    training = {sample.group for sample in dataset.train}
    tested = {sample.group for sample in dataset.test}
    shared = training & tested - {None}
    if shared:
        warnings.warn(
            f"{dataset.described}: {len(shared)} of {len(tested)} groups of test images have "
            f"training images too; what is measured on them is too good",
            DataWarning,
            stacklevel=2,
        )


def with_groups(source: Source, groups: Any, argument: str) -> Source:
    """Images with a group each, as scikit-learn's `groups`: any values, one an image."""
    if groups is None:
        return source
    if source.groups is not None:
        raise UserError(f"{source.described}: its images have groups already; leave {argument} out")
    values = np.asarray(groups, dtype=object).tolist()
    if not isinstance(values, list) or len(values) != len(source):
        count = len(values) if isinstance(values, list) else 1
        raise UserError(
            f"{argument} has {count} values for {len(source)} images; give one an image"
        )
    unknown = [number for number, value in enumerate(values) if value is None or value != value]
    if unknown:
        raise UserError(f"{argument} has no value for image {unknown[0]}; give one an image")
    return replace(source, groups=[str(value) for value in values], grouped_by=argument)


def group_numbers(groups: Sequence[str] | None, images: Sequence[int]) -> NDArray[np.int64]:
    """A number for the group of each of these images, from 0; without groups, every image is one of
    its own.

    They follow the order of the labels, not of the images: a large group is met early, and a split
    by that order would prefer it.
    """
    if groups is None:
        return np.arange(len(images))
    _, numbers = np.unique([groups[image] for image in images], return_inverse=True)
    return numbers.astype(np.int64)


def check_apart(training: Source, calibrating: Source) -> None:
    """Refuse calibration images of groups that are learnt from, or of no group where those have
    one.
    """
    if training.groups is None:
        return
    if calibrating.groups is None:
        raise UserError(
            f"{calibrating.described} calibrates, so its images need groups (calibration_groups); "
            f"those of {training.described} alone have no effect"
        )
    shared = {*training.groups} & {*calibrating.groups}
    if shared:
        raise UserError(
            f"{calibrating.described}: {len(shared)} of its {len({*calibrating.groups})} groups "
            f"are among the training images too; calibrate with images of other groups"
        )
