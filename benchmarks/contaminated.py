"""What contamination costs the Gaussian of small images, and what weights on the images that it
learns from give back.

python benchmarks/contaminated.py --data ~/.cache/igd-data/cifar10.npz --classes 0 3 5 8 \\
    --seeds 0 1 2 --kept DIR --out docs/results/contaminated.json

Ten per cent of the test anomalies join the training images of a class, as in the paper. Each way of
weighing asks how far an image lies from a Gaussian of the other folds, or of the denser half of
them, or which side of a linear discriminant it lies on; then it leaves the furthest out, or counts
each by its normality, as the paper's p(y=0|x) of eq. 5 in an E-step that is repeated.
What is not free on clean images is no remedy, as nobody knows which images are clean; so both are
measured. 'The core first', 'told from the loneliest' and the furthest 30 %, with their numbers,
were chosen on training images of the six classes that are not reported; p(y=0|x), and leaving out
the least normal fifth, were seen before on test images of planes and cats.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from conditions import conditions, publish
from pretraining import as_pixels
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score
from torch import Tensor

from igd.backbones.architectures import DEFAULT
from igd.backbones.features import FrozenBackbone, input_shape
from igd.backbones.weights import load_backbone
from igd.benchmark.differences import interval
from igd.data.protocols import contamination, one_class
from igd.data.reading import read_dataset
from igd.data.sample import Sample
from igd.files import write_text
from igd.pretraining.distillation import teacher_vectors
from igd.progress import TerminalProgress
from igd.rng import generator
from igd.scales.whitening import LEAST, principal

SHARE = 0.1  # of the test anomalies
FOLDS, E_STEPS = 5, 3
NEIGHBOURHOOD = 10  # the tenth of the images that are most like one
STRONG = 0.5  # shrinkage where half of the images make a Gaussian
# The share that is told from all others, in how many directions, and the shrinkage there.
LONELIEST, DIRECTIONS, SHRUNK = 0.25, 256, 0.3
# Left out: logarithms of distances above the median by FAR times what lies between it and this
# quantile.
FAR, BELOW = 1.5, 0.16


class Gaussian(NamedTuple):
    mean: Tensor  # (d,)
    root: Tensor  # (d, d): Cholesky's of the shrunk covariance

    def distance(self, vectors: Tensor) -> Tensor:
        """Mahalanobis's, squared."""
        centred = (vectors - self.mean).T
        white: Tensor = torch.linalg.solve_triangular(self.root, centred, upper=False)
        return white.square().sum(dim=0)


def describe(vectors: Tensor, weight: Tensor, shrinkage: float) -> Gaussian:
    share = weight / weight.sum()
    mean = share @ vectors
    centred = vectors - mean
    covariance = (centred * share[:, None]).T @ centred
    isotropic = covariance.diagonal().mean() * torch.eye(len(covariance))
    return Gaussian(mean, torch.linalg.cholesky(torch.lerp(covariance, isotropic, shrinkage)))


def held_out_distance(vectors: Tensor, weight: Tensor, shrinkage: float) -> Tensor:
    """Of each from the Gaussian of the folds that it is not in: its own would hide it."""
    fold, distance = torch.arange(len(vectors)) % FOLDS, torch.empty(len(vectors))
    for number in range(FOLDS):
        out = fold == number
        made = describe(vectors[~out], weight[~out], shrinkage)
        distance[out] = made.distance(vectors[out])
    return distance


def by_normality(vectors: Tensor) -> Tensor:
    """p(y=0|x) in an E-step that is repeated."""
    weight = torch.ones(len(vectors))
    for _ in range(E_STEPS):
        distance = held_out_distance(vectors, weight, LEAST)
        weight = torch.exp(-distance / (weight @ distance / weight.sum()))
    return weight


def without_furthest(vectors: Tensor, share: float = 0.3) -> Tensor:
    distance = held_out_distance(vectors, torch.ones(len(vectors)), LEAST)
    return (distance <= distance.quantile(1 - share)).float()


def closeness(vectors: Tensor) -> Tensor:
    """Of each to the tenth of the images that are most like it: the mean cosine."""
    unit = torch.nn.functional.normalize(vectors, dim=1)
    return (unit @ unit.T).topk(len(unit) // NEIGHBOURHOOD, dim=1).values.mean(dim=1)


def told_from_loneliest(vectors: Tensor) -> Tensor:
    """By the probability of being none of the quarter that has the least like it, from a linear
    discriminant of the other folds. Normal images are among that quarter, but anomalies more often.
    """
    nearby = closeness(vectors)
    lonely = (nearby < nearby.quantile(LONELIEST)).float()
    _, directions = principal(vectors - vectors.mean(dim=0), DIRECTIONS)
    reduced = vectors @ directions
    fold, weight = torch.arange(len(vectors)) % FOLDS, torch.empty(len(vectors))
    for number in range(FOLDS):
        out = fold == number
        weight[out] = normal_probability(reduced[~out], lonely[~out], reduced[out])
    return weight


def normal_probability(vectors: Tensor, lonely: Tensor, others: Tensor) -> Tensor:
    """Of others to belong to those that are not lonely, by Gaussians that share a covariance."""
    share = lonely.mean()
    centres = [vectors[lonely == each].mean(dim=0) for each in (0, 1)]
    centred = vectors - torch.stack(centres)[lonely.long()]
    within = centred.T @ centred / len(centred)
    isotropic = within.diagonal().mean() * torch.eye(len(within))
    direction = torch.linalg.solve(torch.lerp(within, isotropic, SHRUNK), centres[0] - centres[1])
    odds = (others - (centres[0] + centres[1]) / 2) @ direction
    return torch.sigmoid(odds + torch.logit(1 - share))


def core_first(vectors: Tensor) -> Tensor:
    """Without what lies far from the denser half: a Gaussian of all would hide what it learnt from
    anomalies, and how many there are need not be known.
    """
    nearby = closeness(vectors)
    core = (nearby >= nearby.median()).float()
    distance = held_out_distance(vectors, core, STRONG).log()
    spread = distance.median() - distance.quantile(BELOW)
    return (distance <= distance.median() + FAR * spread).float()


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "as it is": lambda vectors: torch.ones(len(vectors)),
    "weighed by p(y=0|x)": by_normality,
    "without the furthest 30 %": without_furthest,
    "the core first": core_first,
    "told from the loneliest": told_from_loneliest,
}


def vectors_of(data: Path, kept: Path) -> dict[str, Tensor]:
    """The default's vectors of all images, computed once."""
    kept.mkdir(parents=True, exist_ok=True)
    file = kept / f"{data.stem}-vectors.safetensors"
    if not file.exists():
        arrays, backbone = np.load(data), load_backbone(DEFAULT)
        look = FrozenBackbone(backbone, input_shape((32, 32), backbone), (), vector=True)
        found = {}
        for split in ("train", "test"):
            pixels = as_pixels(arrays[f"x_{split}"])
            found[split] = teacher_vectors(look, pixels, TerminalProgress()).half()
        save_file(found, file)
    return {split: each.float() for split, each in load_file(file).items()}


def weighed(vectors: Tensor) -> dict[str, Gaussian]:
    return {name: describe(vectors, way(vectors), LEAST) for name, way in WAYS.items()}


def run(
    vectors: dict[str, Tensor], data: Path, number: int, seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Each way on a class's clean images and, by seed, on contaminated ones; both are tested on
    what is left.
    """

    def of(samples: Sequence[Sample]) -> Tensor:
        places = [sample.identifier.split() for sample in samples]
        return torch.stack([vectors[split][int(place)] for split, place in places])

    every = one_class(read_dataset(data), str(number))
    clean = weighed(of(every.training_samples()))
    for seed in seeds:
        mixed = contamination(every, SHARE, seed)
        # Folds are drawn by place: the anomalies must not be the last.
        learnt = of(mixed.training_samples())
        order = torch.randperm(len(learnt), generator=generator(seed, "mix", number))
        contaminated, tested = weighed(learnt[order]), mixed.test_samples()
        seen, labels = of(tested), [sample.label for sample in tested]
        for way in WAYS:
            told = {"class": number, "seed": seed, "way": way}
            for what, made in (("clean", clean), ("contaminated", contaminated)):
                found = roc_auc_score(labels, made[way].distance(seen))
                told[what] = round(float(found), 4)
            yield told


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By way: means, and what contamination and the way itself cost, over classes."""
    usual = {(each["class"], each["seed"]): each["clean"] for each in runs
             if each["way"] == "as it is"}  # fmt: skip
    told = []
    for way in WAYS:
        own = [each for each in runs if each["way"] == way]
        row: dict[str, Any] = {"way": way}
        for what in ("clean", "contaminated"):
            classes: dict[int, list[float]] = {}
            for each in own:
                lost = each[what] - usual[each["class"], each["seed"]]
                classes.setdefault(each["class"], []).append(lost)
            values = [float(np.mean(each)) for each in classes.values()]
            row[what] = {
                "image_auroc": round(float(np.mean([each[what] for each in own])), 4),
                "difference": round(float(np.mean(values)), 4),
                "interval": [round(each, 4) for each in interval(values)],
            }
        told.append(row)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", default=[0, 3, 5, 8])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--kept", type=Path, required=True, help="folder of vectors and runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    vectors, asked = vectors_of(options.data, options.kept), options.classes
    runs: list[dict[str, Any]] = []
    for number in TerminalProgress().track(asked, len(asked), "classes"):
        seeds = "-".join(map(str, options.seeds))
        file = options.kept / f"contaminated-{options.data.stem}-{number}-{seeds}.json"
        if not file.exists():
            write_text(file, json.dumps(list(run(vectors, options.data, number, options.seeds))))
        runs += json.loads(file.read_text())
    result = {
        "what": f"{options.data.stem}: {SHARE:.0%} of the test anomalies among the training images",
        "command": f"python benchmarks/contaminated.py --data {options.data.name} --classes "
        f"{' '.join(map(str, options.classes))} --seeds {' '.join(map(str, options.seeds))}",
        **conditions("fast", options.seeds[0]),
        "contaminated": summary(runs),
        "runs": runs,
    }
    publish(result, options.out, "contaminated")


if __name__ == "__main__":
    main()
