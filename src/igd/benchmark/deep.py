"""Methods that this package trains: IGD, its ablations and DSVDD, each one objective of the same detector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
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
        own = {"recipe": cls.recipe} if cls.recipe else {}
        return {**settings, **own, "objective": cls.objective}

    @classmethod
    def meaning(cls, settings: Settings) -> Any:
        from igd.recipes import find_objective, find_recipe

        _parameters(settings)
        return asdict(find_recipe(settings["recipe"])), asdict(find_objective(cls.objective))

    def fit(self, images: Sequence[Sample]) -> None:
        from igd.detector import IGD

        checkpoint = self.support.checkpoint
        self.detector = IGD(**_parameters(self.settings), seed=self.seed).fit(
            images,
            checkpoint=checkpoint,
            resume=checkpoint is not None and checkpoint.exists(),
            progress=self.support.progress,
            stop=self.support.stop,
        )

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        for prediction in self.detector.predictions(images, progress=self.support.progress):
            if isinstance(prediction, UserError):
                raise prediction
            yield Scored(prediction.score, prediction.map)


def _parameters(settings: Settings) -> Settings:
    """The detector's parameters, or a clear refusal of those it does not have."""
    from igd.detector import IGD

    known = IGD().get_params()
    wanted = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    if "pretrain" not in known and wanted.get("pretrain") == "scratch":
        del wanted["pretrain"]  # which is what a detector without pre-training does
    unknown = sorted(wanted.keys() - known.keys())
    if unknown:
        name = unknown[0]
        raise UserError(f"{name} {wanted[name]!r}: this version's detector has no setting called {name}; leave it out")
    return wanted


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
