"""The images of a training, read and divided: which are learnt from, which calibrate, and what can
be promised with them.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import torch
from torch import Tensor

from igd.backbones.features import FrozenBackbone
from igd.data.groups import check_apart
from igd.data.image_set import ImageSet
from igd.data.sources import Source
from igd.data.store import Pixels
from igd.errors import UserError
from igd.inference.conformal import choose_rate
from igd.inference.mismatch import record
from igd.progress import Progress
from igd.training.parameters import Parameters
from igd.training.plan import Plan
from igd.training.read_images import read_calibration_images, read_training_images
from igd.training.recalibrate import calibrated_with, described_calibration, promised_rate
from igd.training.split import (
    Split,
    bounded,
    check_groups,
    described_groups,
    groups_of_images,
    split_images,
    split_separate,
    unit_of,
)
from igd.version import __version__

LEAST_KEPT = 2 / 3  # of the images, when odd ones are left out


@dataclass(frozen=True)
class Material:
    """Images, and what each of them is for."""

    source: Source
    separate: Source | None  # of images that were given apart, to calibrate with
    images: ImageSet  # to learn from, and to calibrate with unless others were given apart
    groups: Tensor  # the number of each one's group
    unseen: ImageSet  # that `split` takes the images from which scale and calibrate
    split: Split
    rate: float  # of false alarms, that can be promised

    @property
    def training(self) -> Pixels:
        return self.images.subset(self.split.training).pixels

    @property
    def scaling(self) -> Pixels:
        return self.unseen.subset(self.split.scaling).pixels

    @property
    def calibrating(self) -> Pixels:
        return self.unseen.subset(self.split.calibration).pixels

    @property
    def channels(self) -> int:
        return self.images.pixels.shape[1]

    @property
    def calibration_names(self) -> list[str]:
        return [self.unseen.names[number] for number in self.split.calibration]

    @property
    def cross_fitted(self) -> bool:
        """Whether every image is learnt from, and scored by a model that did not learn from it."""
        return self.separate is None and len(self.split.training) == len(self.images)

    def without(
        self, odd: list[int], plan: Plan, parameters: Parameters
    ) -> tuple[Material, Tensor]:
        """The same without some of the calibration images, by their numbers among these, and which
        of the images that were learnt from still are.
        """
        keeping = torch.ones(len(self.split.calibration), dtype=torch.bool)
        keeping[odd] = False
        kept = torch.ones(len(self.split.training), dtype=torch.bool)
        if self.cross_fitted:
            kept[self.split.calibration[~keeping]] = False
            self._check_most_are_kept(int(kept.sum()))
            images = self.images.subset(kept.nonzero().flatten())
            groups = self.groups[kept].unique(return_inverse=True)[1]
            split = split_images(groups, plan, parameters.seed)
            left = replace(self, images=images, groups=groups, unseen=images, split=split)
        else:
            split = self.split._replace(calibration=self.split.calibration[keeping])
            left = replace(self, split=split)
        if plan.tiling:
            left = replace(left, split=bounded(left.split, parameters.max_false_alarms))
            split = left.split
        return replace(left, rate=_rate(parameters, split, self.source, self.separate)), kept

    def _check_most_are_kept(self, count: int) -> None:
        if count < LEAST_KEPT * (len(self.source) - len(self.images.skipped)):
            raise UserError(
                f"{self.source.described}: more than a third of the images lie far above the rest: "
                f"they may be of several kinds; train a model for each, or keep them (without "
                f"--exclude-odd)"
            )


def gather(
    parameters: Parameters,
    plan: Plan,
    source: Source,
    separate: Source | None,
    progress: Progress,
) -> Material:
    """Read the images and divide them as planned."""
    images = read_training_images(source, plan, parameters, progress)
    groups = groups_of_images(source, images)
    if separate is None:
        check_groups(source, groups)
        unseen, split = images, split_images(groups, plan, parameters.seed)
    else:
        check_apart(source, separate)
        unseen = _read_separate(separate, plan, images.pixels.shape[1], parameters, progress)
        calibrating = groups_of_images(separate, unseen)
        split = split_separate(len(images), calibrating, plan, parameters.seed)
    if plan.tiling:
        split = bounded(split, parameters.max_false_alarms)
    rate = _rate(parameters, split, source, separate)
    return Material(source, separate, images, groups, unseen, split, rate)


def _rate(parameters: Parameters, split: Split, source: Source, separate: Source | None) -> float:
    """The rate of false alarms that the calibration images can promise."""
    asked = parameters.max_false_alarms
    if separate is None:
        return choose_rate(asked, len(split.calibration), unit=unit_of(source))
    return promised_rate(asked, split, separate)


def _read_separate(
    separate: Source, plan: Plan, channels: int, parameters: Parameters, progress: Progress
) -> ImageSet:
    if parameters.calibration is not None:
        raise UserError(
            f"calibration={parameters.calibration:g} has no effect: {separate.described} "
            f"calibrates, and all other images are learnt from; leave one of the two out"
        )
    return read_calibration_images(
        separate,
        plan.geometry,
        channels,
        plan.smallest_side,
        parameters.strict,
        progress,
        plan.tiling,
    )


def provenance(material: Material, backbone: FrozenBackbone | None) -> dict[str, Any]:
    """When, where and from what a detector was made."""
    source, separate, images = material.source, material.separate, material.images
    return {
        "made_by": f"igd {__version__}",
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "source": source.described,
        "protocols": source.protocols,
        "images": len(material.split.training),
        **calibrated_with(material.split),
        "calibration": "cross-fitted" if material.cross_fitted else "held out",
        **described_groups(source if separate is None else separate),
        **({} if separate is None else described_calibration(separate)),
        "skipped": images.skipped,
        **record(images.sizes, images.modes),
        "backbone": backbone.backbone.name if backbone else "none",
        "weights": backbone.backbone.origin if backbone else "none",
    }
