"""What a distilled student is worth, and why: images of one class or of all, vectors as they are or
whitened, and many steps.

python benchmarks/distilling.py --data ~/.cache/igd-data/cifar10.npz --classes 0 1 3 8 \\
    --kept DIR --out docs/results/distilling.json

A student learns EfficientNet-Lite0's vectors of training images, whose labels it is not told; then
a Gaussian of one class's vectors tells its test images from those of the other classes. The teacher
is asked once, and what it said is kept, as are runs that are done.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from conditions import conditions, publish
from numpy.typing import NDArray
from pretraining import as_pixels
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from watching import EncoderWatch

from igd.backbones.architectures import DEFAULT, Backbone
from igd.backbones.features import FrozenBackbone, input_shape
from igd.backbones.weights import load_backbone
from igd.files import write_text
from igd.pretraining.distillation import FAST, learn_vectors, teacher_vectors
from igd.progress import Progress, TerminalProgress
from igd.scales.whitening import start_whitened

WATCHED = 4  # points of a curve, each after twice as many steps as the one before
DIRECTIONS = 256  # of largest variance that whitened vectors keep


class Asked(NamedTuple):
    """One student."""

    images: str  # "all", or the number of the one class whose images it is shown
    whitened: bool  # are the teacher's vectors
    steps: int


class Split(NamedTuple):
    """Images of one split, their labels and the teacher's vectors of them."""

    pixels: Tensor
    labels: NDArray[Any]
    vectors: Tensor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", required=True)
    parser.add_argument("--alone", type=int, default=1, help="class that a student sees alone")
    parser.add_argument("--short", type=int, default=600, help="steps of the comparison")
    parser.add_argument("--long", type=int, default=10_000, help="steps of the last student")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.kept.mkdir(parents=True, exist_ok=True)
    arrays, teacher = np.load(options.data), load_backbone(DEFAULT)
    training, test = (read(arrays, name, teacher, options) for name in ("train", "test"))
    students = [
        Asked(images, whitened, options.short)
        for images in (str(options.alone), "all")
        for whitened in (False, True)
    ]
    students.append(Asked("all", False, options.long))
    by_class = []
    for number in options.classes:
        normal = training.vectors[training.labels == number]
        of_class = auroc(normal, test.vectors, test.labels != number)
        by_class.append({"class": number, "auc": of_class})
    runs = [{"student": "the teacher", "curve": [{"steps": None, "classes": by_class}]}]
    for asked in students:
        file = options.kept / f"student-{asked.images}-{asked.whitened}-{asked.steps}.json"
        if not file.exists():
            write_text(file, json.dumps(distilled(asked, training, test, options)))
        runs.append(json.loads(file.read_text()))
    told = {
        "what": f"{options.data.stem}: students of EfficientNet-Lite0, a Gaussian on each one's "
        f"vectors of test images",
        "command": f"python benchmarks/distilling.py --data {options.data.name} --classes "
        f"{' '.join(map(str, options.classes))} --short {options.short} --long {options.long} "
        f"--seed {options.seed}",
        **conditions("fast", options.seed),
        "students": runs,
    }
    publish(told, options.out)


def read(arrays: Any, name: str, backbone: Backbone, options: argparse.Namespace) -> Split:
    """A split, with what the teacher said of it, now or before."""
    pixels, file = as_pixels(arrays[f"x_{name}"]), options.kept / f"teacher-{name}.npy"
    if not file.exists():
        teacher = FrozenBackbone(
            backbone, input_shape((pixels.shape[-2], pixels.shape[-1]), backbone), (), vector=True
        )
        np.save(file, teacher_vectors(teacher, pixels, TerminalProgress()).numpy())
    return Split(pixels, arrays[f"y_{name}"].ravel(), torch.from_numpy(np.load(file)))


def distilled(
    asked: Asked, training: Split, test: Split, options: argparse.Namespace
) -> dict[str, Any]:
    """One student, measured as it learns."""
    shown = torch.ones(len(training.labels), dtype=torch.bool)
    if asked.images != "all":
        shown = torch.from_numpy(training.labels == int(asked.images))
    target = training.vectors[shown]
    if asked.whitened:
        target = whitening(target, DIRECTIONS)(target)
    numbers = options.classes if asked.images == "all" else [int(asked.images)]
    steps = [asked.steps // 2**power for power in range(WATCHED)]
    watch = EncoderWatch(steps, lambda student: of_classes(student, training, test, numbers))
    settings = replace(FAST, steps=asked.steps, seed=options.seed)
    made = learn_vectors(
        target, training.pixels[shown], settings, "a benchmark", TerminalProgress(), watch=watch
    )
    images = "all classes" if asked.images == "all" else f"class {asked.images}"
    vectors = "whitened" if asked.whitened else "as they are"
    return {
        "student": f"{asked.steps} steps, images of {images}, vectors {vectors}",
        "images": int(shown.sum()),
        "cosine": round(made.agreement, 4),
        "curve": [
            {"steps": each.step, "cpu_seconds": each.seconds, "classes": each.measured}
            for each in watch.curve
        ],
    }


def of_classes(
    student: Backbone, training: Split, test: Split, numbers: list[int]
) -> list[dict[str, Any]]:
    """The AUROC of a Gaussian on the student's vectors, of each class."""
    encode = FrozenBackbone(
        student, (training.pixels.shape[-2], training.pixels.shape[-1]), (), vector=True
    )
    tested = teacher_vectors(encode, test.pixels, Progress())
    found = []
    for number in numbers:
        normal = teacher_vectors(encode, training.pixels[training.labels == number], Progress())
        found.append({"class": number, "auc": auroc(normal, tested, test.labels != number)})
    return found


@torch.no_grad()
def auroc(normal: Tensor, tested: Tensor, anomalous: NDArray[Any]) -> float:
    """A Gaussian of normal images' vectors, on the test images."""
    white = whitening(normal, normal.shape[1])
    distance = torch.cat([white(part).square().sum(dim=1) for part in tested.split(1024)])
    return round(float(roc_auc_score(anomalous, distance.numpy())), 4)


def whitening(vectors: Tensor, directions: int) -> nn.Linear:
    linear = nn.Linear(vectors.shape[1], directions).requires_grad_(False)
    start_whitened(linear, vectors)
    return linear


if __name__ == "__main__":
    main()
