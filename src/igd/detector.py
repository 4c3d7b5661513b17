"""The estimator: scikit-learn's contract over the rooms that do the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from igd.data.groups import with_groups
from igd.data.sources import as_source
from igd.errors import UserError
from igd.files import check_model_path
from igd.inference.predictor import BatchScores, Predictor
from igd.persistence.model_file import from_bytes, read_model, to_bytes, write_model
from igd.progress import Progress
from igd.training.checkpoint import Controls
from igd.training.fit import fit
from igd.training.fitted import FittedState
from igd.training.parameters import OWN, Parameters
from igd.training.recalibrate import recalibrate
from igd.training.update import update

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class IGD(Predictor, Parameters, BaseEstimator):
    """Learns normal images, scores new ones and shows where they deviate. Its parameters are those
    of `Parameters`.

    Examples:
        >>> from igd import IGD
        >>> detector = IGD().fit("parts/good")                # doctest: +SKIP
        >>> detector.predict("parts/new/0001.png").score      # doctest: +SKIP

    `predict` gives a `Prediction` for one image and a list of them for several. `score_samples` and
    `decision_function` have scikit-learn's signs: the lower, the more anomalous, and below 0 is an
    alarm.
    """

    fitted_: FittedState  # all that `fit` learnt, or `load` read

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        calibration_images: Any = None,
        calibration_groups: Any = None,
        progress: Progress | None = None,
        stop: Callable[[], bool] = lambda: False,
        fabric: Fabric | None = None,
    ) -> IGD:
        """Learn from normal images: a folder, a list of files, an array (n, h, w[, 3]) or a
        `Dataset`; `y` is ignored.

        Images of one value in `groups`, one an image, belong together, such as those of a patient:
        none is learnt from by a model that scores another for the threshold, and the promise is
        about an image of a new group. A data set's images may have groups already.

        Other normal images may set the threshold, in place of a share of these
        (`calibration_images`, with their `calibration_groups`).

        With `checkpoint`, the run is written there now and then, and when `stop` says so it ends
        with `Interrupted`; the same call with `resume=True` takes it up and ends exactly where it
        would have ended without the stop. The file stays until you delete it: do so when the
        detector is saved.

        Several processes that call this with the same arguments and a `fabric` that connects them
        (`igd.training.distributed.make_fabric`, under torchrun) share the work, and all end with
        the same detector.
        """
        controls = Controls(progress or Progress(), stop, None, fabric)
        source, separate = with_groups(as_source(X), groups, "groups"), None
        if calibration_images is not None:
            separate = with_groups(
                as_source(calibration_images), calibration_groups, "calibration_groups"
            )
        elif calibration_groups is not None:
            raise UserError("calibration_groups has no effect without calibration_images")
        self.fitted_ = fit(
            self, source, controls, Path(checkpoint) if checkpoint else None, resume, separate
        )
        return self

    def calibrate(
        self,
        X: Any,
        *,
        groups: Any = None,
        max_false_alarms: float | None = None,
        progress: Progress | None = None,
    ) -> IGD:
        """Set the threshold anew, from normal images that the detector did not learn from, without
        training: for another camera, other light, or a lower rate. The rate stays what it was
        unless another is given; too few images for it, or too few `groups` of them, are refused.
        """
        self.check_ready()
        source = with_groups(as_source(X), groups, "groups")
        self.fitted_ = recalibrate(
            self.fitted_, source, max_false_alarms, self.strict, progress or Progress()
        )
        if max_false_alarms is not None:
            self.max_false_alarms = max_false_alarms
        return self

    def update(
        self,
        X: Any,
        *,
        groups: Any = None,
        max_false_alarms: float | None = None,
        progress: Progress | None = None,
    ) -> IGD:
        """Learn from more normal images, without those before: moments of `position` and `whole`
        become what they would be with all images, up to rounding, the patches of `bank`
        approximately. The threshold is that of former and new calibration images together.
        """
        self.check_ready()
        source = with_groups(as_source(X), groups, "groups")
        self.fitted_ = update(
            self.fitted_, source, max_false_alarms, self.strict, progress or Progress()
        )
        if max_false_alarms is not None:
            self.max_false_alarms = max_false_alarms
        return self

    @property
    def max_false_alarms(self) -> float | None:
        """The accepted share of false alarms. Setting it on a fitted detector moves the thresholds,
        as far as the calibration images can promise it; scores and p-values stay.
        """
        rate: float | None = self.__dict__["max_false_alarms"]
        return rate

    @max_false_alarms.setter
    def max_false_alarms(self, rate: float | None) -> None:
        if "fitted_" in self.__dict__:
            self.fitted_ = replace(
                self.fitted_,
                calibration=self.fitted_.calibration.at_rate(rate),
                parameters={**self.fitted_.parameters, "max_false_alarms": rate},
            )
        self.__dict__["max_false_alarms"] = rate

    def score_batch(
        self, pixels: NDArray[np.uint8], places: NDArray[np.int64] | None = None
    ) -> BatchScores:
        score, anomaly_map, terms = self.fitted_.score(
            torch.from_numpy(pixels), None if places is None else torch.from_numpy(places)
        )
        return BatchScores(
            score.numpy(),
            anomaly_map.numpy(),
            {name: value.numpy() for name, value in terms.items()},
        )

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The opposite of each image's score: the lower, the more anomalous, as everywhere in
        scikit-learn.
        """
        predictions = self.predict(X)
        listed = predictions if isinstance(predictions, list) else [predictions]
        return -np.array([prediction.score for prediction in listed], dtype=np.float64)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How far each image is on the normal side of the threshold; below 0 it is anomalous."""
        return self.score_samples(X) + self.threshold_

    def as_outlier_detector(self) -> OutlierDetector:
        """The same detector under scikit-learn's contract, whose `predict` says +1 and -1: fitted
        where this one is.
        """
        outliers = OutlierDetector(self)
        if hasattr(self, "fitted_"):
            outliers.detector_ = self
        return outliers

    def save(self, path: str | Path) -> None:
        """Write the detector as one `.igd` file, whole or not at all."""
        self.check_ready()
        check_model_path(Path(path))
        write_model(Path(path), self.fitted_)

    @classmethod
    def load(cls, path: str | Path) -> IGD:
        """Read a detector from an `.igd` file; nothing in the file is run."""
        fitted = read_model(Path(path))
        known = cls().get_params()
        detector = cls(
            **{name: value for name, value in fitted.parameters.items() if name in known}
        )
        detector.scales = detector.scales and tuple(detector.scales)
        if detector.objective == OWN:
            detector.objective = fitted.objective
        detector.fitted_ = fitted
        return detector

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, joblib and `copy.deepcopy`: parameters, and the model as its file holds
        it.
        """
        state = dict(self.__dict__)
        if "fitted_" in state:
            state["fitted_"] = to_bytes(self.fitted_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        learnt = state.get("fitted_")
        self.__dict__.update(state)
        if learnt is not None:
            self.fitted_ = from_bytes(learnt)

    def check_ready(self) -> None:
        check_is_fitted(self, "fitted_")

    @property
    def identity_(self) -> dict[str, Any]:
        """What made a result: recipe, objective, scales, backbone, seed, version."""
        return {
            "recipe": self.fitted_.parameters["recipe"],
            "objective": self.fitted_.parameters["objective"] if self.fitted_.trained else "none",
            "scales": [scale.settings.name for scale in self.fitted_.scales],
            "backbone": self.provenance_["backbone"],
            "seed": self.fitted_.parameters["seed"],
            "made_by": self.provenance_["made_by"],
        }

    geometry_ = property(lambda self: self.fitted_.geometry)
    tiling_ = property(lambda self: self.fitted_.tiling)
    channels_ = property(lambda self: self.fitted_.channels)
    smallest_side_ = property(lambda self: self.fitted_.smallest_side)
    calibration_ = property(lambda self: self.fitted_.calibration)
    provenance_ = property(lambda self: self.fitted_.provenance)


class OutlierDetector(OutlierMixin, BaseEstimator):
    """A detector for scikit-learn's pipelines, searches and scorers: `predict` gives 1 for normal
    images and -1 for anomalous ones, `fit_predict` both steps.

    A class of its own, and no argument of `IGD.predict`: those who call `predict` there pass
    nothing but the images, and everybody else keeps scores, p-values and maps.
    """

    detector_: IGD

    def __init__(self, detector: IGD | None = None) -> None:
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> OutlierDetector:
        """Learn from normal images, as `IGD.fit` does; `y` is ignored."""
        self.detector_ = clone(self.detector or IGD()).fit(X)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for each normal image, -1 for each anomalous one."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How far each image is on the normal side of the threshold; below 0 it is anomalous."""
        check_is_fitted(self, "detector_")
        return self.detector_.decision_function(X)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The opposite of each image's score."""
        check_is_fitted(self, "detector_")
        return self.detector_.score_samples(X)

    @property
    def offset_(self) -> float:
        """What `decision_function` takes away from `score_samples`."""
        return -self.detector_.threshold_
