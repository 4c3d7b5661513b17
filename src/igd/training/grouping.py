"""The groups of images that were read, and what is said and stored about them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from igd.data.groups import group_numbers
from igd.data.image_set import ImageSet
from igd.data.sources import Source
from igd.errors import UserError
from igd.training.plan import FEWEST


def groups_of_images(source: Source, images: ImageSet) -> Tensor:
    """The number of each image's group, from 0."""
    return torch.from_numpy(group_numbers(source.groups, images.numbers))


def check_groups(source: Source, groups: Tensor) -> None:
    """Refuse so few groups that none can be kept from training."""
    count = int(groups.max()) + 1
    if count < FEWEST:
        raise UserError(
            f"{source.described}: its {len(groups)} images are of {count} group(s), by "
            f"{source.grouped_by}; {FEWEST} are needed, better 100"
        )


def unit_of(source: Source) -> str:
    """What is counted where a rate is promised."""
    return "images" if source.groups is None else "groups"


def described_groups(source: Source) -> dict[str, Any]:
    """How calibration images were grouped, for a model's provenance; no group's label is in it."""
    if source.groups is None:
        return {}
    return {"grouped_by": source.grouped_by, "groups": len({*source.groups})}
