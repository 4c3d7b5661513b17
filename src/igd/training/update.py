"""More good images for a model that has learnt, without those it learnt from.

Scales of moments take them in as if they had been there from the start; a bank is chosen anew from
its patches and the new ones. How parts become one score stays. The threshold comes from the former
calibration scores and from those of the new images, each measured by a model that has learnt from
the former images and from new ones of other folds alone. The former images were measured by models
that knew less, so that the rate is promised approximately, as where all is cross-fitted: for images
that are former and new ones in the proportion of the calibration images.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

import torch
from torch import Tensor

from igd.backbones.features import Features
from igd.data.image_set import ImageSet
from igd.data.sources import Source
from igd.errors import UserError
from igd.inference.conformal import Calibration, choose_rate, threshold
from igd.inference.mismatch import record
from igd.progress import Progress
from igd.rng import generator, spread
from igd.scales.base import FeatureScale
from igd.scales.fusion import Fusion
from igd.training.calibrate import measured, name_odd_ones
from igd.training.calibration_history import MOST_KEPT, record_of, with_former
from igd.training.checkpoint import Controls
from igd.training.crossfit import Distances, cross_fit, distances_of, outputs_of
from igd.training.diagnostics import check_scores
from igd.training.extract import extract_features, features_of_images
from igd.training.fitted import EXAMPLES, FittedState
from igd.training.plan import LEARNT_FROM
from igd.training.read_images import read_calibration_images
from igd.training.recalibrate import say_if_learnt_from
from igd.training.split import groups_of_images, one_of_each, unit_of
from igd.version import __version__

GROWN = 1.5  # times as many images as former calibration images were measured with
UNLIKELY = 0.01  # chance of so many alarms among new images, below which it is said
ODDER = 1.0  # deviations, on average, by which former images may lie further away than before

UPDATED = "updated"  # how such a calibration came about
# In provenance: how many images a model had learnt from that measured the oldest scores in force.
MEASURED_BY = "calibration_by_images"

Measured = tuple[Tensor, Tensor, Tensor]


def update(
    fitted: FittedState, source: Source, asked: float | None, strict: bool, progress: Progress
) -> FittedState:
    """The same model after learning from more images; `asked` is the rate of false alarms to
    promise, by default the one that it was asked for before.
    """
    scales = _extensible(fitted)
    _check_source(fitted, source)
    images = read_calibration_images(
        source, fitted.geometry, fitted.channels, fitted.smallest_side, strict, progress
    )
    groups, seed = groups_of_images(source, images), fitted.parameters["seed"]
    drawn = one_of_each(torch.arange(len(images)), groups, seed)
    rate = _rate(fitted, asked, len(drawn), source)

    controls = Controls(progress, lambda: False, None)
    kept = extract_features(fitted.backbone, fitted.scales, images.pixels, controls)
    features = features_of_images(kept)
    teach = partial(_extend, fitted.provenance["images"])
    extended = _copies(scales)
    teach(extended, features, torch.arange(0), seed)
    by_former = distances_of(scales, features)
    unseen = cross_fit(partial(_copies, scales), features, seed, progress, groups, teach)

    before, after = (_measured(fitted, scales, each, drawn) for each in (by_former, unseen))
    fusion, calibration = _joined(fitted, after, rate)
    check_scores(calibration.scores)
    told = _told(fitted, source, before[0], calibration, len(images))
    renewed = replace(
        fitted,
        parameters={**fitted.parameters, **({} if asked is None else {"max_false_alarms": asked})},
        scales=[*extended],
        fusion=fusion,
        calibration=calibration,
        examples=_examples(fitted, images, drawn),
        provenance=_provenance(fitted, source, images, told),
        former=with_former(fitted.former, record_of(fitted.provenance, fitted.calibration)),
    )
    own = replace(calibration, scores=calibration.scores[-len(drawn) :])
    names = [images.names[number] for number in drawn]
    renewed.provenance["calibration_warnings"] = [
        *name_odd_ones(own, names, "", progress),
        *say_if_learnt_from(
            fitted.fusion.bounded(before[0]).numpy(),
            fitted.calibration,
            f"{source.described}: scores far lower than the images that calibrated the model "
            f"before; if it learnt from these, they count twice now",
            progress,
        ),
        *_say_if_promise_fails(told, rate, progress),
        *_say_if_forgotten(fitted, renewed, progress),
        *_say_if_cautious(renewed.provenance, progress),
    ]
    return replace(renewed, example_scores=renewed.score(renewed.examples).score)


def _extensible(fitted: FittedState) -> list[FeatureScale]:
    """The scales of a model that can learn from more images, or a refusal."""
    others = [each for each in fitted.scales if not isinstance(each, FeatureScale)]
    if others:
        names = ", ".join(scale.settings.name for scale in others)
        raise UserError(
            f"a model with the scale {names} can't learn from more images without the former ones; "
            f"those with closed forms alone can. Train anew with all images, or renew the "
            f"threshold (igd calibrate)"
        )
    if fitted.tiling:
        raise UserError(
            "a model that reads images in tiles can't learn from more of them; train "
            "anew with all images, or renew the threshold (igd calibrate)"
        )
    if "images" not in fitted.provenance:
        raise UserError(
            "the model does not say how many images it learnt from, so that more can't be weighed "
            "against them; train anew with all images"
        )
    return [each for each in fitted.scales if isinstance(each, FeatureScale)]


def _check_source(fitted: FittedState, source: Source) -> None:
    if len(source) > LEARNT_FROM:
        raise UserError(
            f"{source.described}: {len(source)} images; a model learns from {LEARNT_FROM} more at "
            f"a time: give some of them, then the others"
        )
    if "groups" in fitted.provenance and source.groups is None:
        raise UserError(
            f"{source.described}: the model's promise is about new groups (by "
            f"{fitted.provenance['grouped_by']}); say which of these images belong together "
            f"(--group, --group-by)"
        )


def _rate(fitted: FittedState, asked: float | None, new: int, source: Source) -> float:
    """The rate that former and new calibration images can promise together."""
    asked = fitted.parameters.get("max_false_alarms") if asked is None else asked
    count = len(fitted.calibration.scores) + new
    return choose_rate(asked, count, f"add good images to {source.described}", unit_of(source))


def _copies(scales: Sequence[FeatureScale]) -> list[FeatureScale]:
    """Scales that may learn more while these stay: what they learn replaces, and changes nothing
    in place.
    """
    return [copy.copy(each) for each in scales]


def _extend(
    count: int, scales: Sequence[FeatureScale], features: Features, held_out: Tensor, seed: int
) -> None:
    """Let scales that learnt from `count` images learn from these too, but for some."""
    others = features.without(held_out)
    if others.images:  # all images but a fold may be none
        for scale in scales:
            scale.extend(others, count, generator(seed, f"{scale.settings.name} after {count}"))


def _measured(
    fitted: FittedState, scales: Sequence[FeatureScale], distances: Distances, drawn: Tensor
) -> Measured:
    """The images that calibrate, as parts were scaled before."""
    chosen = [[part[drawn] for part in parts] for parts in distances]
    size = fitted.geometry.shape
    return measured(outputs_of(scales, chosen, size), fitted.fusion, fitted.region)


def _joined(fitted: FittedState, new: Measured, rate: float) -> tuple[Fusion, Calibration]:
    """The calibration of former and new images together, and the fusion whose score of 1/2 is its
    threshold.
    """
    fusion, former = fitted.fusion, fitted.calibration
    own, peaks, levels = new
    before = fusion.unbounded(torch.as_tensor(former.scores, dtype=torch.float64))
    deviations = torch.cat([before, own.double()])
    if fusion.scalers is not None:
        fusion = fusion.at_threshold(threshold(deviations, rate))
    level = former.background_level * len(before) + float(levels.sum())
    return fusion, Calibration(
        fusion.bounded(deviations).float().numpy(),
        torch.cat([torch.as_tensor(former.peaks), peaks]).float().numpy(),
        level / len(deviations),
        rate,
    )


def _examples(fitted: FittedState, images: ImageSet, drawn: Tensor) -> Tensor:
    """Former and new images, half of each where there are enough."""
    new = images.pixels[drawn[spread(len(drawn), EXAMPLES // 2)]]
    former = spread(len(fitted.examples), EXAMPLES - len(new))
    return torch.cat([fitted.examples[former], new])


def _told(
    fitted: FittedState, source: Source, before: Tensor, calibration: Calibration, learnt: int
) -> dict[str, Any]:
    """One update, for people."""
    former, new = fitted.calibration, len(before)
    scores = fitted.fusion.bounded(before).numpy()
    return {
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "made_by": f"igd {__version__}",
        "source": source.described,
        "images": learnt,
        "calibration_images": new,
        "alarms_before": int((scores > former.threshold).sum()),
        "alarms": int((calibration.scores[-new:] > calibration.threshold).sum()),
    }


def _provenance(
    fitted: FittedState, source: Source, images: ImageSet, told: dict[str, Any]
) -> dict[str, Any]:
    made, new = fitted.provenance, record(images.sizes, images.modes)
    known = MEASURED_BY if made.get("calibration") == UPDATED else "images"
    groups = {"groups": made["groups"] + len({*(source.groups or [])})} if "groups" in made else {}
    return {
        **made,
        **groups,
        **{name: value if made.get(name) == value else None for name, value in new.items()},
        "images": made["images"] + len(images),
        "calibration_images": len(fitted.calibration.scores) + told["calibration_images"],
        "calibration": UPDATED,
        MEASURED_BY: made[known],
        "calibration_source": f"{source.described} and those before",
        "calibrated_at": told["made_at"],
        "calibrated_by": told["made_by"],
        "skipped": [*made.get("skipped", []), *images.skipped],
        "updates": [*made.get("updates", []), told][-MOST_KEPT:],
    }


def _say_if_promise_fails(told: dict[str, Any], rate: float, progress: Progress) -> list[str]:
    """The rate is that of all images together; new ones may still be odder than the others."""
    from scipy.stats import binom

    alarms, count = told["alarms"], told["calibration_images"]
    if binom.sf(alarms - 1, count, rate) >= UNLIKELY:
        return []
    return _said(
        f"{alarms} of {count} new images still score above the threshold, each measured by a model "
        f"that did not learn from it, and {rate:.1%} are promised of all images together; for new "
        f"ones alone, calibrate on others of them (igd calibrate)",
        progress,
    )


def _say_if_forgotten(fitted: FittedState, renewed: FittedState, progress: Progress) -> list[str]:
    """Some of the former images are in the file: they tell whether they became odder."""
    former, fusion = fitted.examples, fitted.fusion
    rescored = replace(renewed, fusion=fusion, examples=former).score(former).score
    then, now = (
        fusion.unbounded(each.double()).mean() for each in (fitted.score(former).score, rescored)
    )
    if float(now - then) <= ODDER:
        return []
    return _said(
        f"images that the model learnt from before score higher now, by {float(now - then):.1f} "
        f"deviations on average: there are many more new ones; if both kinds are to pass, train "
        f"anew with both",
        progress,
    )


def _say_if_cautious(made: dict[str, Any], progress: Progress) -> list[str]:
    """Models that knew less measured the former images, and find them odder than this one would."""
    if made["images"] < GROWN * made[MEASURED_BY]:
        return []
    return _said(
        f"the model has learnt from {made['images']} images, and former calibration images were "
        f"measured by models of at most {made[MEASURED_BY]}: the threshold is cautious; good "
        f"images that the model did not learn from renew it (igd calibrate)",
        progress,
    )


def _said(message: str, progress: Progress) -> list[str]:
    progress.say(message)
    return [message]
