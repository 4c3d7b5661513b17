"""The five commands that write, on tiny inputs: how each is run, how it goes on, and whether what
it left is whole. Kills and failing writes are both tried on them.
"""

from __future__ import annotations

import csv
import io
import json
import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from torture.materials import TRAINING, Materials, stripes

ROUNDING, MAP_ROUNDING = 1e-6, 1e-4  # of scores and maps, between batches of different sizes
ENCODER = ("--steps", "6", "--batch-size", "4", "--image-size", "32")


@dataclass(frozen=True)
class Writer:
    """A command that writes `target` in the folder it runs in."""

    name: str
    command: list[str]
    again: list[str]  # what goes on after it was stopped
    target: str
    contents: Callable[[Path], Any]  # what must be equal, or an error where it is not whole
    old: bool = True  # whether an older file may be there, which must stay whole
    same: Callable[[Any, Any], bool] = operator.eq  # of two contents

    def left(self, folder: Path) -> Any:
        return self.contents(folder / self.target)


def writers(materials: Materials) -> list[Writer]:
    images, model = str(materials.images), str(materials.igd)
    train = ["train", images, "-o", "made.igd", *TRAINING, "--image-size", "32", "--quiet"]
    pretrain = ["pretrain", "contrastive", images, "-o", "encoder.igd", *ENCODER, "--quiet"]
    predict = ["predict", model, images, "--out", "results", "--maps", "npy", "--quiet"]
    export = ["export", model, "made.onnx", "--quiet"]
    digits = str(write_digits(materials.folder / "mnist.npz"))
    benchmark = ["benchmark", "run", "mnist", "--data", digits, "--store", "runs.sqlite"]
    benchmark += ["--classes", "0", "1", "--methods", "ocsvm", "kde", "--quiet"]
    return [
        Writer("train", train, [*train, "--resume"], "made.igd", model_tensors),
        Writer("pretrain", pretrain, [*pretrain, "--resume"], "encoder.igd", encoder_tensors),
        Writer(
            *("predict", predict, [*predict, "--resume"], "results", scores_and_maps),
            old=False,
            same=same_scores,
        ),
        Writer("benchmark", benchmark, benchmark, "runs.sqlite", finished_runs, old=False),
        Writer("export", export, export, "made.onnx", exported),
    ]


def write_digits(path: Path) -> Path:
    """An .npz file in MNIST's shape, of two classes."""
    if not path.is_file():
        upright, classes = stripes(40, 28)[..., 0], np.repeat([0, 1], 20).astype(np.uint8)
        images = np.concatenate([upright[:20], upright[20:].transpose(0, 2, 1)])
        np.savez(path, x_train=images, y_train=classes, x_test=images, y_test=classes)
    return path


def model_tensors(path: Path) -> dict[str, bytes]:
    from igd.persistence.model_file import FORMAT, KIND, read_model

    read_model(path)
    return _tensors(path, KIND, FORMAT)


def encoder_tensors(path: Path) -> dict[str, bytes]:
    from igd.pretraining.encoders import FORMAT, KIND

    return _tensors(path, KIND, FORMAT)


def _tensors(path: Path, kind: str, version: int) -> dict[str, bytes]:
    from igd.files.tensors import read_tensors

    _, tensors = read_tensors(path, kind, version)
    return {name: value.numpy().tobytes() for name, value in tensors.items()}


def scores_and_maps(folder: Path) -> dict[str, Any]:
    """The rows of the table, and every map; a row speaks of maps that are there."""
    from PIL import Image

    text = (folder / "scores.csv").read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]  # a last row may be cut off; --resume takes it out
    rows = list(csv.DictReader(io.StringIO(whole)))
    maps = {}
    for row in rows:
        name = Path(row["path"]).name
        with Image.open(folder / f"{name}.png") as overlay:
            overlay.load()
        maps[name] = np.load(folder / "maps" / f"{name}.npy")
    return {"rows": rows, "maps": maps}


def same_scores(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """The same verdicts, and numbers that differ by rounding alone: what is missing is scored in
    other batches than before.
    """
    nothing: dict[str, Any] = {}
    rows = list(zip_longest(one["rows"], other["rows"], fillvalue=nothing))
    return all(
        mine.get("path") == theirs.get("path")
        and mine["is_anomalous"] == theirs["is_anomalous"]
        and abs(float(mine["score"]) - float(theirs["score"])) <= ROUNDING
        for mine, theirs in rows
    ) and all(
        np.allclose(one["maps"][name], other["maps"][name], rtol=0, atol=MAP_ROUNDING)
        for name in other["maps"]
    )


def finished_runs(path: Path) -> dict[str, Any]:
    from igd.benchmark.run_store import RunStore

    return {
        key: json.dumps((record.result or {})["metrics"], sort_keys=True)
        for key, record in RunStore(path).finished().items()
    }


def exported(path: Path) -> list[float]:
    from igd.inference.runtime import Runtime

    predictor = Runtime.load(path)
    return [float(score) for score in predictor.score_batch(predictor.probe).score]
