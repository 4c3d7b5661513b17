"""anomalib's PaDiM, PatchCore and MH-PatchCore as methods of `igd benchmark`; beside_anomalib.py
runs them.

Each sees what ours see: images without labels, brought to 256 x 256. The models and their defaults
are anomalib's; what is not:

- all three read a ResNet18, with weights from the file that $IGD_PEER_WEIGHTS names;
- MH-PatchCore gets the whole square; anomalib would cut 224 x 224 out of its middle;
- a training image goes through the network once, where MH-PatchCore would have it three times;
- `farthest_first` and `CovariancePCA` stand in for a bank's selection and for an incremental PCA:
  the same result in a fraction of the time;
- the threshold comes from held-out training images, as ours does. anomalib's needs anomalies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from igd.backbones.weights import read_parameters
from igd.benchmark.methods import Method, Scored, Settings
from igd.data.sample import Sample
from igd.errors import UserError
from igd.inference.conformal import choose_rate, threshold

WEIGHTS = "IGD_PEER_WEIGHTS"
SIDE = 256
BATCH = 32  # images at once: anomalib's default
HELD_OUT = 20  # images at least, so that 5 % false alarms can be promised
ACTIVE = 8192  # rows that `farthest_first` keeps up to date


class Peer(Method):
    """A model of anomalib: learns from all images; a second one, from four fifths of them, scores
    the others for the threshold.
    """

    def build(self) -> nn.Module:
        raise NotImplementedError

    def learn(self, model: Any, embeddings: list[Tensor]) -> None:
        """Learn from what the model in training makes of images, `BATCH` of them in each tensor."""
        raise NotImplementedError

    def fit(self, images: Sequence[Sample]) -> None:
        torch.set_num_threads(1)
        started = time.process_time()
        self.model = self._fresh()
        embeddings = _embeddings(self.model.train(), images)
        self._learn(self.model, embeddings)
        self.training_seconds = time.process_time() - started
        learnt, others = split(len(images), self.seed)
        calibrating = self._fresh()
        self._learn(calibrating, embeddings[learnt])
        outputs = [_output(calibrating, images[index].read()) for index in others]
        self.calibration_scores = np.array([score for score, _ in outputs])
        self.threshold = threshold(self.calibration_scores, choose_rate(None, len(others)))
        self.scale = float(np.mean([anomaly_map.max() for _, anomaly_map in outputs]))

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        self.scoring_seconds, self.scored = 0.0, 0
        for sample in images:
            started = time.process_time()
            score, anomaly_map = _output(self.model, sample.read())
            self.scoring_seconds += time.process_time() - started
            self.scored += 1
            yield Scored(score, in_unit_range(anomaly_map, self.scale))

    def details(self) -> Settings:
        from importlib.metadata import version

        assert self.calibration_scores is not None
        return {
            "anomalib": version("anomalib"),
            "backbone": f"resnet18, {Path(os.environ[WEIGHTS]).name}",
            "calibration_images": len(self.calibration_scores),
            "cpu_seconds_of_training": round(self.training_seconds, 1),
            "cpu_ms_an_image": round(1e3 * self.scoring_seconds / self.scored, 1),
        }

    def _fresh(self) -> nn.Module:
        torch.manual_seed(self.seed)
        np.random.seed(self.seed)  # PatchCore's random projection takes NumPy's own state
        model = self.build()
        load_backbone(model)
        return model

    def _learn(self, model: nn.Module, embeddings: Tensor) -> None:
        with torch.inference_mode():
            self.learn(model, list(embeddings.split(BATCH)))
        model.eval()


class PaDiM(Peer):
    """Defard et al., 2021: 100 of the features of layers 1 to 3, drawn by lot."""

    def build(self) -> nn.Module:
        from anomalib.models.image.padim.torch_model import PadimModel

        return PadimModel(backbone="resnet18", pre_trained=False)

    def learn(self, model: Any, embeddings: list[Tensor]) -> None:
        model.memory_bank = embeddings
        model.fit()


class PatchCore(Peer):
    """Roth et al., 2022: layers 2 and 3; a tenth of all patches are kept, anomalib's default."""

    share = 0.1

    def build(self) -> nn.Module:
        from anomalib.models.image.patchcore.torch_model import PatchcoreModel

        return PatchcoreModel(layers=("layer2", "layer3"), backbone="resnet18", pre_trained=False)

    def learn(self, model: Any, embeddings: list[Tensor]) -> None:
        from anomalib.models.components import KCenterGreedy

        KCenterGreedy.select_coreset_idxs = _selected
        model.embedding_store = [each.flatten(0, 1) for each in embeddings]
        model.subsample_embedding(self.share)


class PatchCore1(PatchCore):
    """The smallest bank of Roth et al.: one patch in a hundred."""

    share = 0.01


class MHPatchCore(Peer):
    """Ferrari et al., 2026: patches whitened after a PCA; 1,000 of them are kept."""

    def build(self) -> nn.Module:
        from anomalib.models.image.mh_patchcore.torch_model import MHPatchcoreModel

        return MHPatchcoreModel(backbone="resnet18", pre_trained=False)

    def learn(self, model: Any, embeddings: list[Tensor]) -> None:
        from anomalib.models.image.mh_patchcore import components

        components._farthest_first_coreset = _coreset
        model.pca._estimator = CovariancePCA()
        patches = [each.flatten(0, 1) for each in embeddings]
        for batch in patches:
            model.pca.update(batch)
        model.pca.finalize()
        for batch in patches:
            model.covariance.update(model.pca(batch))
        model.covariance.finalize()
        for batch in patches:
            model.memory_bank.update(model.covariance(model.pca(batch)))
        model.memory_bank.finalize()


def split(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Which of so many images a model for the threshold learns from, and which it scores: a fifth,
    `HELD_OUT` at least, half at most.
    """
    order = np.random.default_rng(seed).permutation(count).tolist()
    others = min(max(count // 5, HELD_OUT), count // 2)
    return sorted(order[others:]), sorted(order[:others])


def _embeddings(model: Any, images: Sequence[Sample]) -> Tensor:
    """What a model in training makes of images: (n, channels, h, w), or patches (n, h w, d)."""
    found = []
    with torch.inference_mode():
        for start in range(0, len(images), BATCH):
            some = images[start : start + BATCH]
            made = model(torch.cat([prepared(sample.read()) for sample in some]))
            found.append(made if made.ndim == 4 else made.unflatten(0, (len(some), -1)))
    return torch.cat(found)


def _output(model: nn.Module, image: Any) -> tuple[float, NDArray[np.float32]]:
    """The score of one image, and its map at the image's own size."""
    with torch.inference_mode():
        output = model(prepared(image))
        whole = nn.functional.interpolate(
            output.anomaly_map.float(), size=image.size[::-1], mode="bilinear", align_corners=False
        )
    return float(output.pred_score), whole[0, 0].numpy()


def prepared(image: Any) -> Tensor:
    """A picture as anomalib prepares it: resized to the square, in units of ImageNet's colours."""
    pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)[None] / 255
    result: Tensor = _transform()(pixels)
    return result


@cache
def _transform() -> Any:
    from anomalib.models import Patchcore

    return Patchcore.configure_pre_processor((SIDE, SIDE)).transform


def in_unit_range(anomaly_map: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Distances as values in [0, 1) in the same order, which is what the pixel metrics take."""
    return anomaly_map / (anomaly_map + np.float32(scale))


def load_backbone(model: nn.Module) -> None:
    """Weights from the file of `WEIGHTS`: all that this model reads must be in it."""
    path = Path(os.environ.get(WEIGHTS, ""))
    if not path.is_file():
        raise UserError(
            f"{path}: no such file; ${WEIGHTS} names a .safetensors file of a ResNet18, conv1 to "
            f"layer3, with torchvision's names"
        )
    network: Any = model.feature_extractor
    found = network.feature_extractor.load_state_dict(read_parameters(path), strict=False)
    missing = [name for name in found.missing_keys if not name.startswith(("layer4.", "fc."))]
    unknown = [name for name in found.unexpected_keys if not name.startswith(("layer4.", "fc."))]
    if missing or unknown:
        raise UserError(f"{path}: does not fit ResNet18: {', '.join([*missing, *unknown][:5])}")


def farthest_first(rows: Tensor, first: int, count: int, active: int = ACTIVE) -> list[int]:
    """Indices of `count` rows, each the farthest from those before it (k-centre greedy).

    Distances only fall as centres are added. So the next centre is among the rows that were
    farthest when all were last measured, as long as one of these is farther than all others were;
    all rows are measured against many centres at once, by one matrix product.
    """
    squares = rows.square().sum(dim=1)
    nearest = torch.full((len(rows),), torch.inf, dtype=rows.dtype)
    picked, measured = [first], 0
    while len(picked) < count:
        for some in torch.arange(len(rows)).split(ACTIVE):
            new = _squared(rows[some], squares[some], rows[picked[measured:]]).amin(dim=1)
            nearest[some] = torch.minimum(nearest[some], new)
        nearest[picked] = 0
        measured = len(picked)
        top = nearest.topk(min(active + 1, len(rows)))
        bound = float(top.values[-1]) if len(rows) > active else -1.0
        kept = top.indices[:active]
        there, near, square = rows[kept], nearest[kept], squares[kept]
        while len(picked) < count:
            at = int(near.argmax())
            if len(picked) > measured and near[at] < bound:
                break
            picked.append(int(kept[at]))
            near = torch.minimum(near, _squared(there, square, there[at : at + 1])[:, 0])
            near[at] = 0
    return picked


def _squared(rows: Tensor, squares: Tensor, centres: Tensor) -> Tensor:
    """Squared distances of rows, whose squared lengths are known, from centres."""
    products = rows @ centres.T
    return (squares[:, None] - 2 * products + centres.square().sum(dim=1)).clamp_min(0)


def _selected(sampler: Any) -> list[int]:
    """In place of `KCenterGreedy.select_coreset_idxs`: the same projection, start and picks."""
    sampler.model.fit(sampler.embedding)
    rows = sampler.model.transform(sampler.embedding)
    first = torch.randint(high=sampler.n_observations, size=(1,))
    return farthest_first(rows, int(first), sampler.coreset_size)


def _coreset(rows: Tensor, count: int) -> Tensor:
    """In place of MH-PatchCore's `_farthest_first_coreset`, which starts far from the mean."""
    if count >= len(rows):
        return rows.clone()
    first = torch.linalg.vector_norm(rows - rows.mean(dim=0), dim=1).argmax()
    return rows[farthest_first(rows, int(first), count)]


class CovariancePCA:
    """In place of scikit-learn's `IncrementalPCA` of all components, which is the same by singular
    values of one batch after another.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total: Any = 0.0
        self.products: Any = 0.0

    def partial_fit(self, rows: NDArray[np.float32]) -> None:
        if not self.count:
            self.origin = rows.mean(axis=0)  # near the mean, so that products keep their digits
        moved = rows - self.origin
        self.count += len(rows)
        self.total = self.total + moved.sum(axis=0, dtype=np.float64)
        self.products = self.products + (moved.T @ moved).astype(np.float64)

    @property
    def mean_(self) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = self.origin + self.total / self.count
        return mean

    @property
    def components_(self) -> NDArray[np.float64]:
        return self._axes[1].T[::-1]

    @property
    def explained_variance_ratio_(self) -> NDArray[np.float64]:
        values = np.maximum(self._axes[0][::-1], 0)
        return values / values.sum()

    @cached_property  # asked for when all rows have been seen
    def _axes(self) -> Any:
        mean = self.total / self.count
        return np.linalg.eigh(self.products / self.count - np.outer(mean, mean))
