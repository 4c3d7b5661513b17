"""Another threshold for a model that has learnt, from images that it has not: another camera, other
light, a lower rate.

What the scales learnt stays. Renewed are the scores and the peaks of maps that set the thresholds
and, from a quarter of the images, the median of each part of the score and of each map: under other
light every image deviates in some part by the same amount, which would drown what a defect says in
the others. Deviations stay as they were in training, where more images told them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from igd.data.image_set import ImageSet
from igd.data.row_buffer import RowBuffer
from igd.data.sources import Source
from igd.data.tile_set import TileSet
from igd.inference.conformal import Calibration, choose_rate
from igd.progress import Progress
from igd.scales.base import ScaleOutput
from igd.scales.fusion import Fusion
from igd.training.calibrate import Model, calibrate, fit_fusion, name_odd_ones, odd_names
from igd.training.calibrate_tiles import calibrate_tiles, fit_tile_fusion, image_deviation
from igd.training.calibration_history import record_of, with_former
from igd.training.checkpoint import Controls
from igd.training.diagnostics import check_scores
from igd.training.fitted import FittedState, examples_of
from igd.training.read_images import read_calibration_images
from igd.training.split import (
    Split,
    bounded,
    described_groups,
    groups_of_images,
    split_unlearnt,
    unit_of,
)
from igd.training.tile_learner import TileReader, collected
from igd.version import __version__

# Mean p-value of images under the former calibration, and its distance from 1/2 in standard
# deviations, above which they are taken for images that were learnt from.
SUSPICIOUS, SURE = 0.8, 4.0
GROUPED = ("grouped_by", "groups")  # what provenance says of groups

# What the parts of a score become, the new calibration, and scores by the former one.
Renewed = tuple[Fusion, Calibration, NDArray[np.floating]]


def recalibrate(
    fitted: FittedState, source: Source, asked: float | None, strict: bool, progress: Progress
) -> FittedState:
    """The same model, calibrated on images that it did not learn from; `asked` is the rate of false
    alarms to promise, by default the one that it promises already.
    """
    images = read_calibration_images(
        source,
        fitted.geometry,
        fitted.channels,
        fitted.smallest_side,
        strict,
        progress,
        fitted.tiling,
    )
    settings = [scale.settings for scale in fitted.scales]
    split = split_unlearnt(
        groups_of_images(source, images), settings, fitted.fusion.scalers is not None
    )
    promised = fitted.calibration.false_alarm_rate if asked is None else asked
    if fitted.tiling:
        split = bounded(split, promised)
    rate = promised_rate(promised, split, source)
    renew = _renewed_by_tiles if fitted.tiling else _renewed
    fusion, calibration, before = renew(fitted, images, split, rate, progress)
    check_scores(calibration.scores)
    names = [images.names[number] for number in split.calibration]
    warned = name_odd_ones(calibration, names, "", progress)
    warned += say_if_learnt_from(
        before,
        fitted.calibration,
        f"{source.described}: scores far lower than the images that calibrated the model before; "
        f"if it learnt from these, the threshold is too low now: calibrate on others",
        progress,
    )
    examples, places = examples_of(images, split.calibration)
    renewed = replace(
        fitted,
        parameters={**fitted.parameters, **({} if asked is None else {"max_false_alarms": asked})},
        fusion=fusion,
        calibration=calibration,
        examples=examples,
        example_places=None if fitted.example_places is None else places,
        provenance={
            **{n: told for n, told in fitted.provenance.items() if n not in GROUPED},
            **calibrated_with(split),
            **described_groups(source),
            **described_calibration(source),
            "calibration_warnings": warned,
            "odd_images": odd_names(calibration.scores, names),
        },
        former=with_former(fitted.former, record_of(fitted.provenance, fitted.calibration)),
    )
    return replace(renewed, example_scores=renewed.score(examples, renewed.example_places).score)


def _renewed(
    fitted: FittedState, images: ImageSet, split: Split, rate: float, progress: Progress
) -> Renewed:
    scaling, calibrating = (images.subset(n).pixels for n in (split.scaling, split.calibration))
    model, fusion = Model(fitted.backbone, fitted.scales, fitted.region), fitted.fusion
    if fusion.scalers is not None:
        outputs = model.outputs(scaling, progress, "scaling scores")
        fusion = fusion.centred_like(
            fit_fusion(outputs, fusion.sharpness is not None, fitted.region)
        )
    before = RowBuffer()

    def noted() -> Iterator[list[ScaleOutput]]:
        for outputs in model.outputs(calibrating, progress, "calibrating"):
            before.add(fitted.fusion.score(outputs))
            yield outputs

    return (*calibrate(noted(), fusion, rate, fitted.region), before.all.numpy())


def _renewed_by_tiles(
    fitted: FittedState, images: ImageSet, split: Split, rate: float, progress: Progress
) -> Renewed:
    assert fitted.tiling
    assert fitted.backbone
    assert isinstance(images, TileSet)
    scales = Model(fitted.backbone, fitted.scales).on_features
    controls = Controls(progress, lambda: False, None)
    reader = TileReader(fitted.backbone, fitted.tiling, fitted.geometry, controls)
    wanted = torch.cat([split.scaling, split.calibration]).unique().tolist()
    measured = collected(reader.measured(scales, images, wanted), len(wanted), reader)
    scaling = [measured[n] for n in split.scaling.tolist()]
    fusion = fitted.fusion.centred_like(fit_tile_fusion(scales, scaling, fitted.geometry.side))
    calibrating = [(images.sizes[n], measured[n]) for n in split.calibration.tolist()]
    before = [image_deviation(scales, tiles, fitted.fusion) for _, tiles in calibrating]
    return (
        *calibrate_tiles(scales, calibrating, fusion, rate, fitted.tiling, fitted.geometry),
        fitted.fusion.bounded(torch.cat(before)).numpy(),
    )


def promised_rate(asked: float | None, split: Split, source: Source) -> float:
    """The rate that separate images can promise, or what is missing."""
    apart = calibrated_with(split)["measuring_images"]
    unit, count = unit_of(source), len(split.calibration)
    why = f" ({apart} of its {len(source)} scale the parts of the score)" if apart else ""
    remedy = (
        f"add good images{' of other groups' if source.groups else ''} to {source.described}{why}"
    )
    return choose_rate(asked, count, remedy, unit)


def calibrated_with(split: Split) -> dict[str, int]:
    """How many images set the threshold, and how many more scaled the parts of the score."""
    apart = {*split.scaling.tolist()} - {*split.calibration.tolist()}
    return {"calibration_images": len(split.calibration), "measuring_images": len(apart)}


def described_calibration(source: Source) -> dict[str, Any]:
    """When, by what and on which images a model was calibrated that did not learn from them."""
    return {
        "calibration": "separate images",
        "calibration_source": source.described,
        "calibrated_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "calibrated_by": f"igd {__version__}",
    }


def say_if_learnt_from(
    scores: NDArray[np.floating], former: Calibration, message: str, progress: Progress
) -> list[str]:
    """A model knows the images it learnt from: they score too low to set a threshold, and must not
    count twice. Returns what was said.
    """
    mean, new, old = float(former.p_values(scores).mean()), len(scores), len(former.scores)
    deviation = math.sqrt((new + old + 1) / (12 * new * old))  # Mann and Whitney's
    if mean < SUSPICIOUS or mean - 0.5 < SURE * deviation:
        return []
    progress.say(message)
    return [message]
