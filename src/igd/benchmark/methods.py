"""What is compared: the interface, and the methods that this package trains.

A method learns from images without labels and scores images without labels; it is shown nothing
else. IGD, its ablations and DSVDD are objectives of the same detector.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from igd.data.sample import Sample
from igd.errors import UserError
from igd.progress import Progress

if TYPE_CHECKING:
    from igd.inference.predictor import Prediction

Settings = dict[str, Any]


class Scored(NamedTuple):
    """A method's output for one image."""

    score: float  # grows with abnormality
    map: NDArray[np.float32] | None = None  # the same for each pixel, in [0, 1], at full size


@dataclass
class Support:
    """What a long training may use: files that outlive it, a progress bar, and a wish to stop."""

    checkpoint: Path | None = None
    feature_cache: Path | None = None  # a folder, for the features of frozen backbones
    progress: Progress = field(default_factory=Progress)
    stop: Callable[[], bool] = lambda: False


class Method(ABC):
    """Something to compare; a new one implements `fit` and `score` and gets a name in
    `suites.METHODS`.
    """

    paper_name: ClassVar[str | None] = None  # what the paper's tables call it
    unit_scores: ClassVar[bool] = False  # scores in [0, 1], where accuracy at 0.5 means something
    source: ClassVar[str | None] = None  # digest of the user's own file that it came from

    threshold: float | None = None  # scores above it are alarms, where `fit` chose one
    calibration_scores: NDArray[np.floating] | None = None  # of normal images held out in `fit`

    def __init__(self, settings: Settings, seed: int, support: Support) -> None:
        self.settings, self.seed, self.support = settings, seed, support

    @classmethod
    def relevant_settings(cls, settings: Settings) -> Settings:
        """Those of the settings asked for that make a difference to this method."""
        return {}

    @classmethod
    def config(cls, settings: Settings) -> Any:
        """The numbers that the settings' names stand for."""
        return None

    @classmethod
    def check(cls, settings: Settings, side: int) -> None:
        """Refuse settings by which no run on images of this side could be made."""
        return

    def details(self) -> Settings:
        """What became of the settings in `fit`, for the record."""
        return {}

    @abstractmethod
    def fit(self, images: Sequence[Sample]) -> None:
        """Learn from the training images, whatever is among them."""

    @abstractmethod
    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        """Score images one after another, in order."""


class Trained(Method):
    """A detector of this package with one of its objectives."""

    objective: ClassVar[str] = "igd"
    recipe: ClassVar[str | None] = None  # None: the one asked for
    unit_scores = True

    @classmethod
    def relevant_settings(cls, settings: Settings) -> Settings:
        from igd.scales.recipes import find_recipe

        recipe = find_recipe(cls.recipe or settings["recipe"])
        return {
            **settings,
            "recipe": recipe.name,
            "pretrain": settings.get("pretrain") or recipe.pretrain,
            "objective": cls.objective,
        }

    @classmethod
    def config(cls, settings: Settings) -> Any:
        from igd.scales.recipes import find_objective, find_recipe

        encoder = Path(settings["pretrain"])
        made = hashlib.sha256(encoder.read_bytes()).hexdigest() if encoder.is_file() else None
        return asdict(find_recipe(settings["recipe"])), asdict(find_objective(cls.objective)), made

    @classmethod
    def check(cls, settings: Settings, side: int) -> None:
        from igd.scales.recipes import find_recipe
        from igd.training.parameters import Parameters
        from igd.training.plan import choose_scales
        from igd.training.refusals import refuse_without_effect

        parameters, recipe = Parameters(**given(settings)), find_recipe(settings["recipe"])
        scales = choose_scales(parameters, recipe, side)
        refuse_without_effect(parameters, recipe, scales, side)

    def fit(self, images: Sequence[Sample]) -> None:
        from igd.detector import IGD

        checkpoint, cache = self.support.checkpoint, self.support.feature_cache
        self.detector = IGD(**given(self.settings), seed=self.seed, feature_cache=cache).fit(
            images,
            checkpoint=checkpoint,
            resume=checkpoint is not None and checkpoint.exists(),
            progress=self.support.progress,
            stop=self.support.stop,
        )
        self.threshold = self.detector.threshold_
        self.calibration_scores = self.detector.calibration_.scores

    def details(self) -> Settings:
        made = {
            name: self.detector.provenance_[name]
            for name in ("images", "calibration_images", "backbone", "fingerprint")
        }
        backbone = self.detector.fitted_.backbone
        cache = backbone and backbone.cache
        recalled = (
            {"features_recalled": cache.recalled, "features_computed": cache.computed}
            if cache
            else {}
        )
        return {
            "scales": [scale.settings.name for scale in self.detector.fitted_.scales],
            **made,
            **recalled,
        }

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        for prediction in self.detector.predictions(images, progress=self.support.progress):
            if isinstance(prediction, UserError):
                raise prediction
            yield self.reading(prediction)

    def reading(self, prediction: Prediction) -> Scored:
        """What counts of a prediction; another method may read another term of it."""
        return Scored(prediction.score, prediction.map)


def given(settings: Settings) -> Settings:
    """Settings as the detector takes them; in JSON they have no tuples."""
    return {
        name: tuple(each) if isinstance(each, list) else each for name, each in settings.items()
    }


class InterpolatedGaussian(Trained):
    paper_name = "IGD"


class AuthorsInterpolatedGaussian(Trained):
    """As the authors' public code has it."""

    paper_name = "IGD"
    objective = "authors"
    recipe = "authors"


class DeepSVDD(Trained):
    paper_name = "DSVDD"
    objective = "dsvdd"


class DeepSVDDWithReconstruction(Trained):
    paper_name = "DSVDD+REC"
    objective = "dsvdd+rec"


class SquaredError(Trained):
    paper_name = "MSE"
    objective = "mse"


class Reconstruction(Trained):
    paper_name = "REC"
    objective = "rec"


class ReconstructionWithClassifier(Trained):
    paper_name = "REC+GAC"
    objective = "rec+gac"
