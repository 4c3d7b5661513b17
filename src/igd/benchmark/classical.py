"""One-class SVM and kernel density of scikit-learn, on few components of whatever features an image has.

`features` is the place to put others in, such as those of a frozen network:

    class FrozenSVM(OneClassSVM):
        @classmethod
    def meaning(cls, settings: Settings) -> Any:
        return cls.__qualname__, SIDE, VARIANCE, NU, BANDWIDTHS, JUDGED_ON

    def features(self, images):
            return frozen_features(images)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.benchmark.method import Method, Scored, Settings
from igd.data.samples import Sample

SIDE = 32  # of the squares that larger images are shrunk to
VARIANCE = 0.95  # share that the components keep, as in the DSVDD paper's baselines
NU = 0.1  # share of the training images that may lie outside
BANDWIDTHS = tuple(2 ** (n / 2) for n in range(1, 11))  # those baselines' too
JUDGED_ON = 1000  # training images, at most, that choose the bandwidth


def pixels(images: Sequence[Sample]) -> NDArray[np.float64]:
    """Each image's pixels in [0, 1] as one row; large images shrunk."""
    return np.stack([_row(sample.read()) for sample in images])


def _row(image: Image.Image) -> NDArray[np.float64]:
    if max(image.size) > SIDE:
        image = image.resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.asarray(image, dtype=np.float64).ravel() / 255


class Classical(Method):
    """A scikit-learn estimator of normality on principal components of the features."""

    @classmethod
    def meaning(cls, settings: Settings) -> Any:
        return cls.__qualname__, SIDE, VARIANCE, NU, BANDWIDTHS, JUDGED_ON

    def features(self, images: Sequence[Sample]) -> NDArray[np.float64]:
        """One row an image."""
        return pixels(images)

    @abstractmethod
    def estimator(self, components: NDArray[np.float64]) -> Any:
        """An unfitted estimator, its parameters chosen on the training images alone."""

    def fit(self, images: Sequence[Sample]) -> None:
        from sklearn.decomposition import PCA

        rows = self.features(images)
        self.components = PCA(VARIANCE, svd_solver="full").fit(rows)
        reduced = self.components.transform(rows)
        self.fitted = self.estimator(reduced).fit(reduced)

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        normality = self.fitted.score_samples(self.components.transform(self.features(images)))
        return (Scored(-float(value)) for value in normality)


class OneClassSVM(Classical):
    paper_name = "OCSVM"

    def estimator(self, components: NDArray[np.float64]) -> Any:
        from sklearn.svm import OneClassSVM as Estimator

        return Estimator(nu=NU, gamma="scale")


class KernelDensity(Classical):
    paper_name = "KDE"

    def estimator(self, components: NDArray[np.float64]) -> Any:
        """The bandwidth under which held-out training images are likeliest."""
        from sklearn.model_selection import GridSearchCV
        from sklearn.neighbors import KernelDensity as Estimator

        chance = np.random.default_rng(self.seed)
        some = components[chance.permutation(len(components))[:JUDGED_ON]]
        folds = min(5, len(some))
        search = GridSearchCV(Estimator(), {"bandwidth": BANDWIDTHS}, cv=folds).fit(some)
        return Estimator(bandwidth=search.best_params_["bandwidth"])
