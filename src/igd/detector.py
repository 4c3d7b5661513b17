"""The detector: global and local models behind scikit-learn's contract, calibrated on held-out normal images."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from igd.calibration import choose_rate
from igd.checkpoint import Checkpoint, fingerprint
from igd.combination import Unit, combined
from igd.data.decoding import ImageSet
from igd.data.geometry import Fit
from igd.data.sources import as_source
from igd.errors import TrainingWarning
from igd.files import check_writable
from igd.health import check_scores
from igd.judging import Judge, Seen
from igd.learning import see, train_scale
from igd.looking import Look, heat_of, parts_of
from igd.measuring import calibrate, measure_scales, measure_units, split_held_out
from igd.modelfile import StoredModel, build_scale, read_model, write_model
from igd.preparation import (
    choose_held_out,
    choose_origin,
    choose_scales,
    make_backbone,
    read_training_images,
    smallest_side,
)
from igd.pretraining.backbones import DEFAULT
from igd.progress import Progress
from igd.recipes import Combination, find_objective, find_recipe
from igd.scale import Scale
from igd.version import __version__

EXAMPLES = 8  # held-out images that the model file keeps
PLACES = ("feature_cache", "weights")  # parameters that say where something is, not what is computed


class IGD(Judge, BaseEstimator):
    """Interpolated Gaussian descriptor: learns normal images, scores new ones and shows where they deviate.

    Examples:
        >>> from igd import IGD
        >>> detector = IGD().fit("parts/good")                # doctest: +SKIP
        >>> detector.predict("parts/new/0001.png").score      # doctest: +SKIP

    `predict` gives a `Prediction` for one image and a list of them for several. `score_samples` and
    `decision_function` have scikit-learn's signs: the lower, the more anomalous, and below 0 is an alarm.
    """

    def __init__(
        self,
        recipe: str = "fast",
        objective: str = "igd",
        scales: tuple[str, ...] | None = None,  # None: all that the recipe has for images of this size
        image_size: int | None = None,  # side of the square the model sees; None: 32 for small images, else 256
        fit_to: Fit | None = None,  # resize, crop or letterbox; None: resize, and the training images have one size
        epochs: int | None = None,  # passes over the images; None: the recipe's, as for all below
        steps: int | None = None,  # batches, instead of epochs
        batch_size: int | None = None,
        learning_rate: float | None = None,
        width: int | None = None,
        calibration: float = 0.2,  # share of the images held out for the threshold
        max_false_alarms: float | None = None,  # None: 0.05, or the lowest rate the held-out images can promise
        seed: int = 0,
        device: str = "cpu",  # cpu or cuda
        precision: Literal["32-true", "bf16-mixed"] = "32-true",
        strict: bool = False,  # refuse unreadable images instead of leaving them out
        pretrain: str | None = None,  # scratch, imagenet, distill, contrastive, or an encoder's file; None: the recipe's
        backbone: str = DEFAULT,  # of which imagenet weights are taken
        weights: str | Path | None = None,  # a file with them; None: those on this machine
        combination: Combination | None = None,  # of scales: calibrated, or the paper's sum; None: the recipe's
        feature_cache: str | Path | None = None,  # a folder to keep the backbone's features of images in; None: nowhere
    ) -> None:
        self.recipe = recipe
        self.objective = objective
        self.scales = scales
        self.image_size = image_size
        self.fit_to = fit_to
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.width = width
        self.calibration = calibration
        self.max_false_alarms = max_false_alarms
        self.seed = seed
        self.device = device
        self.precision = precision
        self.strict = strict
        self.pretrain = pretrain
        self.backbone = backbone
        self.weights = weights
        self.combination = combination
        self.feature_cache = feature_cache

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> IGD:
        """Learn from normal images: a folder, a list of files, an array (n, h, w[, 3]) or a `Dataset`; `y` is ignored.

        With `checkpoint`, the run is written there now and then, and when `stop` says so it ends with `Interrupted`;
        the same call with `resume=True` takes it up and ends exactly where it would have ended without the stop. The file
        stays until you delete it: do so when the detector is saved.
        """
        started, progress = time.time(), progress or Progress()
        objective = find_objective(self.objective)
        source = as_source(X)
        settings, geometry = choose_scales(self, source)
        images = read_training_images(source, geometry, settings, self, progress)
        held_out = choose_held_out(len(images), self.calibration, self.seed)
        fitting, calibrating = split_held_out(held_out.nonzero().flatten(), settings, self._calibrated)
        rate = choose_rate(self.max_false_alarms, len(calibrating))
        training = images.subset((~held_out).nonzero().flatten())
        origin = choose_origin(self)
        described = {
            "made_by": __version__,
            "parameters": {name: value for name, value in self.get_params().items() if name not in PLACES},
            "objective": asdict(objective),
            "scales": [asdict(each) for each in settings],
            "seen by": origin and origin.described,
        }
        run = fingerprint(described, training.pixels)
        saved = Checkpoint(Path(checkpoint), run, described) if checkpoint else None
        if saved and resume and not saved.load():
            progress.say(f"{saved.path}: nothing to resume; starting from the beginning")

        frozen = None
        if origin:
            frozen = make_backbone(origin, settings, geometry.side, training.pixels, progress, stop, saved)
        scales = [build_scale(each, objective, geometry.side, images.pixels.shape[1], frozen) for each in settings]
        features: dict[str, Tensor] = {}
        if frozen:
            if self.feature_cache:
                frozen.remember_in(Path(self.feature_cache))
            features = see(frozen, scales, training.pixels, progress, stop, saved)
        for scale in scales:
            if isinstance(scale, Scale):
                name = scale.settings.name
                samples = scale.samples(training.pixels, features.get(name), features.get(f"{name} mirrored"))
                for message in train_scale(scale, samples, saved, self.device, self.precision, progress, stop):
                    warnings.warn(f"{name} model: {message}", TrainingWarning, stacklevel=2)

        self.geometry_, self.channels_, self.false_alarm_rate_ = geometry, images.pixels.shape[1], rate
        self.scales_, self.backbone_ = scales, frozen
        self.units_: list[Unit] | None = None
        self.map_units_: list[Unit] | None = None
        if self._calibrated:
            self._measure(images.subset(fitting), progress)
        usual = calibrate(
            map(self._looks, self._batches(images.subset(calibrating), progress, "calibrating")),
            self.units_,
            self.map_units_,
            rate,
        )
        check_scores(usual.scores)
        self.calibration_scores_, self.calibration_peaks_ = usual.scores, usual.peaks
        self.usual_heat_, self.alarming_ = usual.usual_heat, usual.alarming
        self.examples_ = images.pixels[calibrating[:EXAMPLES]]
        self.provenance_ = {
            "made_by": f"igd {__version__}",
            "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "seconds": round(time.time() - started, 1),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "threads": torch.get_num_threads(),
            "source": source.described,
            "protocols": source.protocols,
            "images": len(training),
            "calibration_images": len(calibrating),
            "measuring_images": len(held_out.nonzero()) - len(calibrating),
            "skipped": images.skipped,
            "backbone": frozen.backbone.name if frozen else "none",
            "weights": frozen.backbone.origin if frozen else "none",
            "fingerprint": run,
        }
        return self

    @property
    def _calibrated(self) -> bool:
        return (self.combination or find_recipe(self.recipe).combination) == "calibrated"

    def _measure(self, images: ImageSet, progress: Progress) -> None:
        """Put all parts of a score on one scale, by how far held-out normal images stray in each."""
        trained = [scale for scale in self.scales_ if isinstance(scale, Scale)]
        if trained:
            measure_scales(trained, self.backbone_, self._batches(images, progress, "measuring models"))
        looks = map(self._looks, self._batches(images, progress, "measuring spreads"))
        self.units_, self.map_units_ = measure_units(looks)

    def _batches(self, images: ImageSet, progress: Progress, doing: str) -> Iterator[Tensor]:
        batches = torch.arange(len(images)).split(self.batch_)
        return (images.pixels[indices] for indices in progress.track(batches, len(batches), doing))

    def _looks(self, pixels: Tensor) -> list[Look]:
        """What each scale sees; the backbone looks once for all of them."""
        seen = self.backbone_(pixels) if self.backbone_ else None
        return [scale.look(pixels, seen) for scale in self.scales_]

    def latents(self, pixels: Tensor) -> dict[str, Tensor]:
        """Where images, at the model's size, lie in the space of each scale: (b, Z) each."""
        seen = self.backbone_(pixels) if self.backbone_ else None
        return {scale.settings.name: scale.latents(pixels, seen) for scale in self.scales_}

    def look(self, pixels: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Score, map and terms of images at the model's size, uint8 (b, c, side, side): eqs. 13 and 16, as means.

        The one function that every score comes from, in calibration, prediction and evaluation.
        """
        return self.combine(self._looks(pixels))

    def combine(self, looks: list[Look]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Score, map and terms of images, from what each scale sees."""
        score = combined(parts_of(looks), self.units_, self.alarming_)
        heat = heat_of(looks, self.map_units_)
        named = zip((scale.settings.name for scale in self.scales_), looks, strict=True)
        terms = {f"{name}.{term}": value for name, look in named for term, value in look.terms.items()}
        return score, heat, terms

    def see(self, pixels: NDArray[np.uint8]) -> Seen:
        score, heat, terms = self.look(torch.from_numpy(pixels))
        return Seen(score.numpy(), heat.numpy(), {name: value.numpy() for name, value in terms.items()})

    def check_ready(self) -> None:
        check_is_fitted(self, "scales_")

    @property
    def smallest_side_(self) -> int:  # type: ignore[override]
        return smallest_side([scale.settings for scale in self.scales_])

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The opposite of each image's score: the lower, the more anomalous, as everywhere in scikit-learn."""
        predictions = self.predict(X)
        listed = predictions if isinstance(predictions, list) else [predictions]
        return -np.array([prediction.score for prediction in listed], dtype=np.float64)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How far each image is on the normal side of the threshold; below 0 it is anomalous."""
        return self.score_samples(X) + self.threshold_

    def save(self, path: str | Path) -> None:
        """Write the detector as one `.igd` file, whole or not at all."""
        check_is_fitted(self, "scales_")
        places = dict.fromkeys(PLACES)  # whose paths are nobody else's business
        parameters = {**self.get_params(), **places, "scales": self.scales and list(self.scales)}
        parameters["pretrain"] = self.pretrain and Path(self.pretrain).name  # of an encoder's file
        stored = StoredModel(
            parameters,
            self.geometry_,
            self.channels_,
            find_objective(self.objective),
            self.scales_,
            self.backbone_,
            self.units_,
            self.map_units_,
            self.alarming_,
            self.calibration_scores_,
            self.calibration_peaks_,
            self.examples_,
            self.usual_heat_,
            self.false_alarm_rate_,
            self.provenance_,
        )
        check_writable(Path(path))
        write_model(Path(path), stored)

    @classmethod
    def load(cls, path: str | Path) -> IGD:
        """Read a detector from an `.igd` file; nothing in the file is run."""
        stored = read_model(Path(path))
        known = cls().get_params()
        detector = cls(**{name: value for name, value in stored.parameters.items() if name in known})
        detector.scales = detector.scales and tuple(detector.scales)
        detector.geometry_, detector.channels_ = stored.geometry, stored.channels
        detector.scales_, detector.backbone_ = stored.scales, stored.backbone
        detector.units_, detector.map_units_, detector.alarming_ = stored.units, stored.map_units, stored.alarming
        detector.calibration_scores_, detector.calibration_peaks_ = stored.calibration_scores, stored.calibration_peaks
        detector.usual_heat_, detector.examples_ = stored.usual_heat, stored.examples
        detector.false_alarm_rate_, detector.provenance_ = stored.false_alarm_rate, stored.provenance
        return detector
