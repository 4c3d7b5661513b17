"""What scoring one image costs on one thread, in CPU time: the backbone alone, detectors, and their
exported models.

python benchmarks/scoring.py --out docs/results/scoring.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from conditions import conditions

from igd import IGD
from igd.backbones.features import FrozenBackbone
from igd.backbones.weights import load_backbone
from igd.data.demo import make_demo
from igd.deploy.export import export
from igd.files import write_text
from igd.inference.runtime import Runtime

SIDE = 256
BATCHES = (1, 8)
EVERY_SCALE = ("global", "local", "position")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        costs = {
            **measured(backbones(), options.rounds),
            **measured(detectors(Path(folder)), options.rounds),
        }
    summary = {
        "what": "CPU time of one image, one thread, things measured in turn",
        "command": f"python benchmarks/scoring.py --rounds {options.rounds}",
        **conditions("fast", 0),
        "ms_an_image": costs,
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def backbones() -> dict[str, tuple[Callable[[], object], int]]:
    """EfficientNet-Lite0 at 256 pixels in the ways that this machine can run it."""
    frozen = FrozenBackbone(load_backbone("efficientnet_lite0"), (SIDE, SIDE), (), vector=True)
    image = torch.rand(1, 3, SIDE, SIDE)
    last = image.contiguous(memory_format=torch.channels_last)
    network = frozen.backbone.network
    in_layout = load_backbone("efficientnet_lite0").network.to(memory_format=torch.channels_last)
    view, laid_out = (
        (lambda net: net.pool(net.maps(image)[-1])),
        (lambda net: net.pool(net.maps(last)[-1])),
    )
    return {
        "lite0, PyTorch": (torch.no_grad()(lambda: view(network)), 1),
        "lite0, PyTorch, channels last": (torch.no_grad()(lambda: laid_out(in_layout)), 1),
        "lite0, ONNX Runtime": (lambda: frozen.graph(image), 1),
    }


def detectors(folder: Path) -> dict[str, tuple[Callable[[], object], int]]:
    """The default detector and one with every scale, and what is exported from each."""
    make_demo(folder / "demo")
    pixels = np.random.default_rng(0).integers(
        0, 256, (max(BATCHES), 3, SIDE, SIDE), dtype=np.uint8
    )
    found: dict[str, tuple[Callable[[], object], int]] = {}
    for name, settings in (("default", {}), ("every scale", {"scales": EVERY_SCALE, "steps": 20})):
        detector = IGD(image_size=SIDE, **settings).fit(folder / "demo" / "train" / "good")
        export(detector, folder / "model.onnx")
        runtime = Runtime.load(folder / "model.onnx", threads=1)
        for batch in BATCHES:
            part = pixels[:batch]
            found[f"{name}, PyTorch, batch {batch}"] = (
                (lambda predictor=detector, part=part: predictor.score_batch(part)),
                batch,
            )
            found[f"{name}, ONNX, batch {batch}"] = (
                (lambda predictor=runtime, part=part: predictor.score_batch(part)),
                batch,
            )
    return found


def measured(
    things: dict[str, tuple[Callable[[], object], int]], rounds: int
) -> dict[str, dict[str, Any]]:
    """Median and least CPU time an image, in ms, of each, one after another in every round."""
    times: dict[str, list[float]] = {name: [] for name in things}
    for number in range(rounds + 1):
        for name, (run, images) in things.items():
            started = time.process_time()
            run()
            if number:  # the first round warms up
                times[name].append(1000 * (time.process_time() - started) / images)
    return {
        name: {"median": round(median(each), 1), "least": round(min(each), 1)}
        for name, each in times.items()
    }


if __name__ == "__main__":
    main()
