"""Methods that this package trains: IGD, its ablations and DSVDD, each one objective of the same detector."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from igd.benchmark.method import Method, Scored, Settings
from igd.data.samples import Sample
from igd.errors import UserError


class Trained(Method):
    """A detector of this package with one of its objectives."""

    objective: ClassVar[str] = "igd"
    recipe: ClassVar[str | None] = None  # None: the one asked for
    unit_scores = True

    @classmethod
    def obeys(cls, settings: Settings) -> Settings:
        from igd.recipes import find_recipe

        recipe = find_recipe(cls.recipe or settings["recipe"])
        return {
            **settings,
            "recipe": recipe.name,
            "pretrain": settings.get("pretrain") or recipe.pretrain,
            "objective": cls.objective,
        }

    @classmethod
    def meaning(cls, settings: Settings) -> Any:
        from igd.recipes import find_objective, find_recipe

        encoder = Path(settings["pretrain"])
        made = hashlib.sha256(encoder.read_bytes()).hexdigest() if encoder.is_file() else None
        return asdict(find_recipe(settings["recipe"])), asdict(find_objective(cls.objective)), made

    def fit(self, images: Sequence[Sample]) -> None:
        from igd.detector import IGD
        from igd.scale import Scale

        checkpoint = self.support.checkpoint
        given: Settings = {name: tuple(each) if isinstance(each, list) else each for name, each in self.settings.items()}
        self.detector = IGD(**given, seed=self.seed, feature_cache=self.support.feature_cache).fit(
            images,
            checkpoint=checkpoint,
            resume=checkpoint is not None and checkpoint.exists(),
            progress=self.support.progress,
            stop=self.support.stop,
        )
        if self.objective != "igd" and not any(isinstance(scale, Scale) for scale in self.detector.scales_):
            looking = ", ".join(self.details()["scales"])
            raise UserError(
                f"objective {self.objective}: makes no difference to the scales that recipe {self.settings['recipe']} has for "
                f"these images ({looking}); add --scales global,local"
            )
        self.threshold = self.detector.threshold_

    def details(self) -> Settings:
        made = {name: self.detector.provenance_[name] for name in ("images", "calibration_images", "backbone", "fingerprint")}
        memory = self.detector.backbone_ and self.detector.backbone_.memory
        recalled = {"features_recalled": memory.recalled, "features_computed": memory.computed} if memory else {}
        return {"scales": [scale.settings.name for scale in self.detector.scales_], **made, **recalled}

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        for prediction in self.detector.predictions(images, progress=self.support.progress):
            if isinstance(prediction, UserError):
                raise prediction
            yield Scored(prediction.score, prediction.map)


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
