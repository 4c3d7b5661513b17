"""One-class SVM and kernel density of scikit-learn, on few components of whatever features an image
has.

`features` is the place to put others in, as those of a frozen network are below.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.benchmark.methods import Method, Scored, Settings
from igd.data.sample import Sample

SIDE = 32  # of the squares that larger images are shrunk to
VARIANCE = 0.95  # share that the components keep, as in the DSVDD paper's baselines
NU = 0.1  # share of the training images that may lie outside
BANDWIDTHS = tuple(2 ** (n / 2) for n in range(1, 11))  # those baselines' too
BATCH = 64  # images that a network reads together
CHOSEN_ON = 1000  # training images, at most, that choose the bandwidth


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
    def config(cls, settings: Settings) -> Any:
        return cls.__qualname__, SIDE, VARIANCE, NU, getattr(cls, "bandwidths", None), CHOSEN_ON

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
    paper_name: ClassVar[str | None] = "OCSVM"

    def estimator(self, components: NDArray[np.float64]) -> Any:
        from sklearn.svm import OneClassSVM as Estimator

        return Estimator(nu=NU, gamma="scale")


class KernelDensity(Classical):
    paper_name: ClassVar[str | None] = "KDE"
    bandwidths = BANDWIDTHS

    def estimator(self, components: NDArray[np.float64]) -> Any:
        """The bandwidth under which held-out training images are likeliest."""
        from sklearn.model_selection import GridSearchCV
        from sklearn.neighbors import KernelDensity as Estimator

        rng = np.random.default_rng(self.seed)
        some = components[rng.permutation(len(components))[:CHOSEN_ON]]
        folds = min(5, len(some))
        search = GridSearchCV(Estimator(), {"bandwidth": self.bandwidths}, cv=folds).fit(some)
        return Estimator(bandwidth=search.best_params_["bandwidth"])


class FrozenOneClassSVM(OneClassSVM):
    """On the features of a network trained on ImageNet, as IGD with `--pretrain imagenet`."""

    paper_name = None

    def features(self, images: Sequence[Sample]) -> NDArray[np.float64]:
        return frozen_vectors(images)


class FrozenKernelDensity(KernelDensity):
    """The same; vectors of length 1 are nearer to each other than images."""

    paper_name = None
    bandwidths = tuple(2 ** (n / 2) for n in range(-10, 2))

    def features(self, images: Sequence[Sample]) -> NDArray[np.float64]:
        return frozen_vectors(images)


def frozen_vectors(images: Sequence[Sample]) -> NDArray[np.float64]:
    """The pooled features of the default backbone, scaled to length 1."""
    import torch

    from igd.backbones.architectures import DEFAULT
    from igd.backbones.features import SMALL_LIMIT, FrozenBackbone, input_shape
    from igd.backbones.weights import load_backbone
    from igd.data.geometry import Geometry, stack
    from igd.scales.recipes import LARGE_SIDE, SMALL_SIDE

    side = SMALL_SIDE if min(images[0].read().size) <= SMALL_LIMIT else LARGE_SIDE
    backbone = load_backbone(DEFAULT)
    frozen = FrozenBackbone(backbone, input_shape((side, side), backbone), (), vector=True)
    rows = []
    for first in range(0, len(images), BATCH):
        squares = [
            Geometry(side).to_model(sample.read()) for sample in images[first : first + BATCH]
        ]
        vector = frozen(torch.from_numpy(stack(squares))).vector
        assert vector is not None
        rows.append(vector.double().numpy())
    vectors = np.concatenate(rows)
    lengths: NDArray[np.float64] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)
