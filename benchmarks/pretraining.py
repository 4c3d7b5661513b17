"""Encoders of one's own: contrastive against scratch as pre-training goes on, and a distilled
student against its teacher.

python benchmarks/pretraining.py --data ~/.cache/igd-data/cifar10.npz --classes 1 7 9 --steps 600 \\
    --rotated --parts contrastive --scratch docs/results/cifar10-scratch.json \\
    --out docs/results/contrastive.json
python benchmarks/pretraining.py --data ~/.cache/igd-data/cifar10.npz --classes 1 --steps 600 \\
    --parts distilled --scratch docs/results/cifar10-scratch.json --out docs/results/distilled.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from conditions import conditions
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from watching import EncoderWatch

from igd import IGD
from igd.backbones.architectures import DEFAULT, Backbone
from igd.backbones.features import FrozenBackbone, input_shape
from igd.backbones.weights import load_backbone
from igd.benchmark.benchmark_data import find_data
from igd.benchmark.run import Protocol
from igd.benchmark.run_store import read_records
from igd.benchmark.trial import forget_peak_memory, peak_memory_mb
from igd.files import write_text
from igd.pretraining import contrastive, distillation
from igd.pretraining.encoders import save_encoder
from igd.progress import Progress, TerminalProgress
from igd.scales.whitening import start_whitened

PARTS = ("contrastive", "distilled")
WATCHED = 5  # points of the curve, each after twice as many steps as the one before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", required=True)
    parser.add_argument(
        "--steps",
        type=int,
        default=contrastive.FAST.steps,
        help="of pre-training (default: %(default)s, with --rotated too)",
    )
    parser.add_argument(
        "--tested", type=int, default=10_000, help="test images (default: %(default)s)"
    )
    parser.add_argument(
        "--rotated",
        action="store_true",
        help="turned images count as others, and turns are told apart",
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all"
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        required=True,
        help="export of igd benchmark: detectors without pre-training",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    arrays = np.load(options.data)
    scratch = {
        number: from_scratch(options.scratch, number, options.seed) for number in options.classes
    }
    runs: list[dict[str, Any]] = []
    for number in options.classes:
        runs.append({"class": number, "scratch": scratch[number], **run(arrays, number, options)})
        report(runs, options)  # what is done is kept, whatever happens to the rest


def report(runs: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Print and write what was measured so far."""
    summary = {
        "what": f"{options.data.stem}: encoders of one's own, {' and '.join(options.parts)}",
        "command": f"python benchmarks/pretraining.py --data {options.data.name} "
        f"--classes {' '.join(map(str, options.classes))} --steps {options.steps} --tested "
        f"{options.tested} "
        f"--seed {options.seed} --parts "
        f"{' '.join(options.parts)}{' --rotated' if options.rotated else ''} "
        f"--scratch {options.scratch}",
        **conditions("fast", options.seed),
        "encoders": runs,
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def run(arrays: Any, number: int, options: argparse.Namespace) -> dict[str, Any]:
    """Everything about one normal class."""
    normal, test = (
        arrays["x_train"][arrays["y_train"].ravel() == number],
        arrays["x_test"][: options.tested],
    )
    labels = arrays["y_test"].ravel()[: options.tested] != number
    pixels, test_pixels = as_pixels(normal), as_pixels(test)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "contrastive": lambda: contrasted(normal, pixels, test, test_pixels, labels, options),
        "distilled": lambda: distilled(pixels, test_pixels, labels, options),
    }
    return {part: parts[part]() for part in options.parts}


def from_scratch(path: Path, number: int, seed: int) -> dict[str, Any]:
    """The detector of this class and seed that learnt from scratch, as igd benchmark measured
    it.
    """
    for record in read_records(path):
        run, result = record.run, record.result
        wanted = (find_data(run.data).classes[number], "igd", seed, Protocol(), "fast", "scratch")
        settings = run.settings.get("recipe"), run.settings.get("pretrain")
        if (run.normal, run.method, run.seed, run.protocol, *settings) == wanted and result:
            return {
                "auc": result["metrics"]["image_auroc"],
                "training_seconds": result["seconds"]["training"],
                "peak_memory_mb": result["peak_memory_mb"],
            }
    raise SystemExit(f"{path}: holds no detector of class {number} with seed {seed}")


def trained(
    normal: NDArray[Any], test: NDArray[Any], labels: NDArray[Any], seed: int, pretrain: str
) -> dict[str, Any]:
    """A whole detector: its AUC, time and memory."""
    forget_peak_memory()
    started = time.perf_counter()
    detector = IGD(pretrain=pretrain, seed=seed).fit(normal, progress=TerminalProgress())
    seconds = time.perf_counter() - started
    auc = roc_auc_score(labels, -detector.score_samples(test))
    return {
        "auc": float(auc),
        "training_seconds": round(seconds, 1),
        "peak_memory_mb": peak_memory_mb(),
    }


def contrasted(
    normal: NDArray[Any],
    pixels: Tensor,
    test: NDArray[Any],
    test_pixels: Tensor,
    labels: NDArray[Any],
    options: Any,
) -> dict[str, Any]:
    """The curve of a Gaussian on the encoder's features as it learns, and the detector trained on
    the last encoder.
    """
    steps = {max(1, options.steps // 2**power) for power in range(WATCHED)}
    forget_peak_memory()
    fast = contrastive.FAST_ROTATED if options.rotated else contrastive.FAST
    settings = replace(fast, steps=options.steps, seed=options.seed)
    watch = EncoderWatch(
        steps,
        lambda encoder: gaussian_auc(upright(encoder), pixels, test_pixels, labels),
        time.perf_counter,
    )
    made = contrastive.contrast(pixels, settings, TerminalProgress(), watch=watch)
    seconds, memory = watch.seconds, peak_memory_mb()
    with tempfile.TemporaryDirectory() as folder:
        save_encoder(Path(folder) / "encoder.igd", upright(made.encoder), {})
        detector = trained(normal, test, labels, options.seed, str(Path(folder) / "encoder.igd"))
    return {
        "curve": [
            {"step": each.step, "seconds": each.seconds, "auc": each.measured}
            for each in watch.curve
        ],
        "pretraining_seconds": round(seconds, 1),
        "peak_memory_mb": memory,
        "detector": detector,
    }


def distilled(
    pixels: Tensor, test_pixels: Tensor, labels: NDArray[Any], options: Any
) -> dict[str, Any]:
    """Student and teacher: how alike their vectors of test images are, and a Gaussian's AUC on each
    one's.
    """
    backbone = load_backbone(DEFAULT)
    teacher = FrozenBackbone(
        backbone, input_shape((pixels.shape[-2], pixels.shape[-1]), backbone), (), vector=True
    )
    settings = replace(distillation.FAST, steps=options.steps, seed=options.seed)
    forget_peak_memory()
    started = time.perf_counter()
    made = distillation.distil(teacher, pixels, settings, TerminalProgress())
    return {
        "cosine": made.agreement,
        "auc_of_student": gaussian_auc(made.encoder, pixels, test_pixels, labels),
        "auc_of_teacher": gaussian_auc(backbone, pixels, test_pixels, labels),
        "seconds": round(time.perf_counter() - started, 1),
        "peak_memory_mb": peak_memory_mb(),
    }


def upright(encoder: Backbone) -> Backbone:
    """One that sees an image once, as it is: so the paper's does."""
    return replace(encoder, turned=False, seen_twice=False)


def gaussian_auc(
    encoder: Backbone, pixels: Tensor, test_pixels: Tensor, labels: NDArray[Any]
) -> float:
    """AUC of the distance to the normal images' mean, in whitened features: the descriptor before
    any training.
    """
    look = FrozenBackbone(
        encoder, input_shape((pixels.shape[-2], pixels.shape[-1]), encoder), (), vector=True
    )
    normal, test = (
        distillation.teacher_vectors(look, part, Progress()) for part in (pixels, test_pixels)
    )
    linear = nn.Linear(normal.shape[1], normal.shape[1])
    start_whitened(linear, normal)
    with torch.no_grad():
        distance = torch.cat([linear(part).square().sum(dim=1) for part in test.split(1024)])
    return float(roc_auc_score(labels, distance.numpy()))


def as_pixels(images: NDArray[Any]) -> Tensor:
    """(n, h, w[, 3]) as 8-bit (n, c, 32, 32)."""
    pixels = (
        torch.from_numpy(images).reshape(len(images), *images.shape[1:3], -1).permute(0, 3, 1, 2)
    )
    if pixels.shape[-1] == 32:
        return pixels.contiguous()
    return F.interpolate(pixels.float(), (32, 32), mode="bilinear").round().to(torch.uint8)


if __name__ == "__main__":
    main()
