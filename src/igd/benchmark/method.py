"""What is compared. A method learns from images without labels and scores images without labels; it sees nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from igd.data.samples import Sample
from igd.progress import Progress

Settings = dict[str, Any]


class Scored(NamedTuple):
    """What a method says about one image."""

    score: float  # grows with abnormality
    map: NDArray[np.float32] | None = None  # the same for each pixel, in [0, 1], at the size of the image


@dataclass
class Support:
    """What a long training may use: files that outlive it, someone to tell, and a wish to stop."""

    checkpoint: Path | None = None
    feature_cache: Path | None = None  # a folder, for what frozen backbones see
    progress: Progress = field(default_factory=Progress)
    stop: Callable[[], bool] = lambda: False


class Method(ABC):
    """Something to compare; a new one implements `fit` and `score` and gets a name in METHODS."""

    paper_name: ClassVar[str | None] = None  # what the paper's tables call it
    unit_scores: ClassVar[bool] = False  # whether scores lie in [0, 1], so that 'accuracy at 0.5' means something
    source: ClassVar[str | None] = None  # digest of the file it came from, where that is the user's own

    threshold: float | None = None  # the score above which it would raise an alarm, where it chose one in `fit`

    def __init__(self, settings: Settings, seed: int, support: Support) -> None:
        self.settings, self.seed, self.support = settings, seed, support

    @classmethod
    def obeys(cls, settings: Settings) -> Settings:
        """Those of the settings asked for that make a difference to this method."""
        return {}

    @classmethod
    def meaning(cls, settings: Settings) -> Any:
        """What the settings stand for, in numbers."""
        return None

    def details(self) -> Settings:
        """What became of the settings in `fit`, for the record."""
        return {}

    @abstractmethod
    def fit(self, images: Sequence[Sample]) -> None:
        """Learn from the training images, whatever is among them."""

    @abstractmethod
    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        """Judge images one after another, in order."""
