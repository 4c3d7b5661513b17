"""One class of a data set as the normal one: what is learnt from, and what it is told from.

Choices see no test image: a normal class's training images are divided into those that are learnt
from and those that are held out, and the latter are told from training images of the other classes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pretraining import as_pixels
from sklearn.metrics import roc_auc_score
from torch import Tensor

from igd.rng import generator

SCALING, NORMAL, OTHERS = 250, 500, 1000  # held out: to scale by, and to be told apart


class Held:
    """What is learnt from, and what is scored: `SCALING` normal images to scale by, then the images
    to be told apart.
    """

    def __init__(self, learnt: Tensor, scaling: Tensor, normal: Tensor, others: Tensor) -> None:
        self.learnt, self.scored = learnt, torch.cat([scaling, normal, others])
        self.anomalous = torch.arange(len(normal) + len(others)) >= len(normal)

    def auroc(self, values: Tensor) -> float:
        return round(float(roc_auc_score(self.anomalous, values[SCALING:])), 4)


def divided(arrays: Any, number: int, split: str, seed: int, share: float = 1.0) -> Held:
    """The images of a run on held-out training images, or on the test split; of those to learn
    from, a share.
    """
    training, labels = as_pixels(arrays["x_train"]), arrays["y_train"].ravel()
    rng = generator(seed, "hold out", number)
    normal, others = (
        torch.from_numpy(np.flatnonzero(each)) for each in (labels == number, labels != number)
    )
    normal = normal[torch.randperm(len(normal), generator=rng)]
    scaling, held_out, learnt = normal.split([SCALING, NORMAL, len(normal) - SCALING - NORMAL])
    if split == "test":
        learnt = normal[SCALING:]
    learnt = learnt[: round(share * len(learnt))]
    if split == "train":
        others = others[torch.randperm(len(others), generator=rng)[:OTHERS]]
        return Held(training[learnt], training[scaling], training[held_out], training[others])
    test, anomalous = as_pixels(arrays["x_test"]), arrays["y_test"].ravel() != number
    return Held(training[learnt], training[scaling], test[~anomalous], test[anomalous])


def class_arguments(description: str | None) -> argparse.ArgumentParser:
    """What every measurement of one class after another is told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--split", choices=("train", "test"), default="train")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, required=True, help="folder of runs that are done")
    parser.add_argument("--out", type=Path)
    return parser
