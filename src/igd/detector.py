"""The detector: global and local models behind scikit-learn's contract, calibrated on held-out normal images."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from igd.calibration import choose_rate, p_values, threshold
from igd.checkpoint import Checkpoint, fingerprint
from igd.combination import Unit, combined
from igd.data.geometry import Fit
from igd.data.images import in_parallel
from igd.data.sources import ImageSet, Source, as_source, stack
from igd.errors import TrainingWarning, UserError
from igd.files import check_writable
from igd.learning import see, train_scale
from igd.method.health import check_scores
from igd.modelfile import StoredModel, build_scale, read_model, write_model
from igd.preparation import check_large_enough, choose_backbone, choose_held_out, choose_scales, read_training_images
from igd.pretraining.backbones import DEFAULT
from igd.progress import Progress
from igd.recipes import AnyScale, Combination, ScaleSettings, find_objective, find_recipe
from igd.scale import Look, Scale
from igd.timing import Timing
from igd.version import __version__

FEWEST_TO_SPLIT = 8  # held-out images
PLACES = ("feature_cache", "weights")  # parameters that say where something is, not what is computed
USUAL = 0.99  # share of a normal image's pixels that its heat map should leave uncoloured
PIXELS_AT_ONCE = 16 * 256 * 256  # scored together


@dataclass(frozen=True)
class Prediction:
    """What the detector says about one image."""

    name: str
    score: float  # in [0, 1], grows with abnormality
    p_value: float  # share of normal images that look at least as anomalous
    is_anomalous: bool  # at the detector's false-alarm rate
    map: NDArray[np.float32]  # the size of the image, in [0, 1]
    terms: dict[str, float]  # l_r and l_h of each scale, of the local one at its worst patch
    image: Image.Image | None = None  # as it was decoded, where `predictions` was asked to keep it


class Readable(NamedTuple):
    """A decoded image on its way to the model."""

    square: NDArray[np.uint8]  # what the model sees of it
    size: tuple[int, int]  # width and height of the original
    image: Image.Image | None  # the original, where it is to be kept
    seconds: float  # that decoding took


class IGD(BaseEstimator):
    """Interpolated Gaussian descriptor: learns normal images, scores new ones and shows where they deviate.

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
        fitting, calibrating = self._split(held_out.nonzero().flatten(), settings)
        rate = choose_rate(self.max_false_alarms, len(calibrating))
        training = images.subset((~held_out).nonzero().flatten())
        frozen = choose_backbone(self, settings, geometry, training, progress, stop)
        described = {
            "made_by": __version__,
            "parameters": {name: value for name, value in self.get_params().items() if name not in PLACES},
            "objective": asdict(objective),
            "scales": [asdict(each) for each in settings],
            "seen by": frozen and frozen.described,
        }
        run = fingerprint(described, training.pixels)
        saved = Checkpoint(Path(checkpoint), run) if checkpoint else None
        if saved and resume and not saved.load():
            progress.say(f"{saved.path}: nothing to resume; starting from the beginning")

        scales = [build_scale(each, objective, geometry.side, images.pixels.shape[1], frozen) for each in settings]
        features: dict[str, Tensor] = {}
        if frozen:
            if self.feature_cache:
                frozen.remember_in(Path(self.feature_cache))
            features = see(frozen, scales, training.pixels, progress, stop)
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
            self._measure_units(images.subset(fitting), progress)
        self._calibrate(images.subset(calibrating), progress)
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

    def _split(self, held_out: Tensor, settings: list[AnyScale]) -> tuple[Tensor, Tensor]:
        """The held-out images that the parts of a score are measured on, and those that it is calibrated on.

        One part alone is only stretched, which changes no order and no p-value. Several are weighed against each other by
        what they say about images, and the promise holds for images that had no say in it: a quarter is set aside.
        """
        one_part = len(settings) == 1 and not (isinstance(settings[0], ScaleSettings) and settings[0].patch is None)
        if one_part or not self._calibrated or len(held_out) < FEWEST_TO_SPLIT:
            return held_out, held_out
        count = len(held_out) // 4
        return held_out[:count], held_out[count:]

    def _measure_units(self, images: ImageSet, progress: Progress) -> None:
        """How far held-out normal images stray in each part of the score, and in each scale's map."""
        parts: list[Tensor] = []
        peaks: list[Tensor] = []
        batches = torch.arange(len(images)).split(self._batch)
        for indices in progress.track(batches, len(batches), "measuring spreads"):
            looks = self._looks(images.pixels[indices])
            parts.append(torch.stack([value for look in looks for value, _ in look.parts], dim=1))
            peaks.append(torch.stack([look.map.flatten(1).amax(dim=1) for look in looks], dim=1))
        self.units_ = [Unit.measured(column) for column in torch.cat(parts).T]
        self.map_units_ = [Unit.measured(column) for column in torch.cat(peaks).T]

    def _calibrate(self, images: ImageSet, progress: Progress) -> None:
        """Learn from held-out normal images which scores and which map values are usual."""
        scores, peaks, usual = [], [], []
        batches = torch.arange(len(images)).split(self._batch)
        for indices in progress.track(batches, len(batches), "calibrating"):
            score, heat, _ = self.look(images.pixels[indices])
            scores.append(score)
            peaks.append(heat.flatten(1).amax(dim=1))
            usual.append(heat.flatten(1).quantile(USUAL, dim=1))
        self.calibration_scores_ = torch.cat(scores)
        self.calibration_peaks_ = torch.cat(peaks)
        self.usual_heat_ = float(torch.cat(usual).mean())
        check_scores(self.calibration_scores_)

    def _looks(self, pixels: Tensor) -> list[Look]:
        """What each scale sees; the backbone looks once for all of them."""
        seen = self.backbone_(pixels) if self.backbone_ else None
        return [scale.look(pixels, seen) for scale in self.scales_]

    def latents(self, pixels: Tensor) -> dict[str, Tensor]:
        """Where images, at the model's size, lie in the space of each scale: (b, Z) each."""
        seen = self.backbone_(pixels) if self.backbone_ else None
        return {scale.settings.name: scale.latents(pixels, seen) for scale in self.scales_}

    def square(self, image: Image.Image) -> NDArray[np.uint8]:
        """What the models see of an image: (side, side[, 3])."""
        return self.geometry_.to_square(image.convert("RGB" if self.channels_ == 3 else "L"))

    def look(self, pixels: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Score, map and terms of images at the model's size, uint8 (b, c, side, side): eqs. 13 and 16, as means.

        The one function that every score comes from, in calibration, prediction and evaluation.
        """
        looks = self._looks(pixels)
        score = combined([(value, share / len(looks)) for look in looks for value, share in look.parts], self.units_)
        heat = combined([(look.map, 1.0) for look in looks], self.map_units_)
        named = zip((scale.settings.name for scale in self.scales_), looks, strict=True)
        terms = {f"{name}.{term}": value for name, look in named for term, value in look.terms.items()}
        return score, heat, terms

    @property
    def threshold_(self) -> float:
        """Images with a higher score are anomalous, at `false_alarm_rate_`."""
        check_is_fitted(self, "scales_")
        return threshold(self.calibration_scores_, self.false_alarm_rate_)

    @property
    def pixel_threshold_(self) -> float:
        """Map values above this are rarer than one normal image in 1 / `false_alarm_rate_`."""
        check_is_fitted(self, "scales_")
        return threshold(self.calibration_peaks_, self.false_alarm_rate_)

    @property
    def _batch(self) -> int:
        """How many images are scored together: enough to be fast, few enough for any memory."""
        return min(256, max(1, PIXELS_AT_ONCE // self.geometry_.side**2))

    def predictions(
        self, images: Any, *, progress: Progress | None = None, timing: Timing | None = None, keep_images: bool = False
    ) -> Iterator[Prediction | UserError]:
        """Judge images one after another, in order; an unreadable one gives the error that says so.

        With `keep_images`, predictions carry their decoded images; of these, no more than a batch is held here.
        """
        check_is_fitted(self, "scales_")
        source = as_source(images)
        items = self._predict(source, timing or Timing(), keep_images)
        yield from (progress or Progress()).track(items, len(source), "scoring")

    def _predict(self, source: Source, timing: Timing, keep_images: bool) -> Iterator[Prediction | UserError]:
        def read(number: int) -> Readable | Exception:
            started = time.perf_counter()
            try:
                image = source.read(number)
                check_large_enough(source.names[number], image.size, [scale.settings for scale in self.scales_])
                square = self.square(image)
            except Exception as error:  # raised in its turn, after what came before it was judged
                return error
            return Readable(square, image.size, image if keep_images else None, time.perf_counter() - started)

        pending: list[tuple[str, Readable | UserError]] = []
        for name, decoded in zip(source.names, in_parallel(read, range(len(source))), strict=True):
            if isinstance(decoded, Exception) and not isinstance(decoded, UserError):
                yield from self._judge(pending, timing)
                raise decoded
            pending.append((name, decoded))
            if len(pending) == self._batch:
                yield from self._judge(pending, timing)
                pending = []
        yield from self._judge(pending, timing)

    def _judge(self, pending: list[tuple[str, Readable | UserError]], timing: Timing) -> Iterator[Prediction | UserError]:
        readable = [decoded for _, decoded in pending if isinstance(decoded, Readable)]
        judged = self._scored(readable, timing) if readable else iter(())
        for name, decoded in pending:
            yield decoded if isinstance(decoded, UserError) else replace(next(judged), name=name)

    def _scored(self, readable: list[Readable], timing: Timing) -> Iterator[Prediction]:
        started = time.perf_counter()
        score, heat, terms = self.look(stack([each.square for each in readable]))
        timing.model += time.perf_counter() - started
        timing.decoding += sum(each.seconds for each in readable)
        p_value = p_values(score, self.calibration_scores_)
        limit = self.threshold_
        for n, each in enumerate(readable):
            yield Prediction(
                name="",
                score=float(score[n]),
                p_value=float(p_value[n]),
                is_anomalous=bool(score[n] > limit),
                map=self.geometry_.to_original(heat[n].numpy(), *each.size),
                terms={name: float(value[n]) for name, value in terms.items()},
                image=each.image,
            )

    def predict(self, X: Any) -> Prediction | list[Prediction]:
        """A `Prediction` for one file or one array (h, w[, 3]); a list of them for a folder, a list or (n, h, w[, 3])."""
        check_is_fitted(self, "scales_")
        one = isinstance(X, str | Path) and Path(X).is_file()
        if isinstance(X, np.ndarray) and (X.ndim == 2 or X.shape[2:] == (3,)):
            X, one = X[None], True
        judged = []
        for prediction in self.predictions(X):
            if isinstance(prediction, UserError):
                raise prediction
            judged.append(prediction)
        return judged[0] if one else judged

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
            self.calibration_scores_,
            self.calibration_peaks_,
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
        detector.units_, detector.map_units_ = stored.units, stored.map_units
        detector.calibration_scores_, detector.calibration_peaks_ = stored.calibration_scores, stored.calibration_peaks
        detector.usual_heat_ = stored.usual_heat
        detector.false_alarm_rate_, detector.provenance_ = stored.false_alarm_rate, stored.provenance
        return detector
