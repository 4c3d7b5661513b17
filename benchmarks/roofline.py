"""How much faster a training step of the paper could still be: the arithmetic it has to do, at the
rate of one large matrix product, beside the time it takes.

What is counted are the multiplications and additions of convolutions and matrix products, forwards
and backwards; oneDNN's convolutions don't need all of them (Winograd), ours and plain steps alike.
A step can't be faster than its arithmetic at the rate of the best matrix product that the machine
does, unless it does less. Everything else (normalisation, activations, MS-SSIM, Adam) moves memory
and comes on top. Rate and step are measured in turn, on one thread.

python benchmarks/roofline.py --out docs/results/roofline.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from conditions import conditions
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from training_step import STEPS, Images, fresh, ours, plain

from igd.files import write_text
from igd.method.schedule import Training
from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity

SIDE = 2048  # of the matrices whose product says what the machine can do
ARITHMETIC = ("conv", "mm", "linear", "matmul")  # in the names of operations that are counted


class Shape(NamedTuple):
    """What is trained on what."""

    side: int
    width: int
    batch: int
    setting: Similarity


SHAPES = {
    "32 x 32, width 64 as in the paper, batch 64": Shape(32, 64, 64, PATCH),
    "256 x 256, width 64 as in the paper, batch 4": Shape(256, 64, 4, WHOLE_IMAGE),
}


def measure(shape: Shape, rounds: int) -> dict[str, dict[str, float]]:
    """Ours and plain steps: arithmetic, time, rate, and the share of each in the machine's rate."""
    side, width, batch, setting = shape
    training = Training(steps=STEPS, batch_size=batch)
    fast, usual = (
        Images(batch, side, layout) for layout in (torch.channels_last, torch.contiguous_format)
    )
    one, other = (
        fresh(side, width, fast, training, True),
        fresh(side, width, usual, training, False),
    )
    sides: dict[str, Callable[[], None]] = {
        "ours": partial(ours, one, fast, training, setting),
        "plain": partial(plain, other, usual, setting),
    }
    operations = {name: counted(run) for name, run in sides.items()}
    matrix = torch.randn(SIDE, SIDE)
    rates, seconds = [], {name: list[float]() for name in sides}
    for _ in range(rounds):
        rates.append(2 * SIDE**3 / timed(lambda: matrix @ matrix))
        for name, run in sides.items():
            seconds[name].append(timed(run))
    best = max(rates)
    return {
        name: {
            "gflop_a_step": round(operations[name] / STEPS / 1e9, 1),
            "ms_a_step": round(1e3 * median(seconds[name]) / STEPS, 1),
            "gflop_a_second": round(operations[name] / median(seconds[name]) / 1e9, 1),
            "machine_gflop_a_second": round(best / 1e9, 1),
            "least_ms_a_step": round(1e3 * operations[name] / best / STEPS, 1),
            "share_of_arithmetic": round(share_of_arithmetic(run), 3),
        }
        for name, run in sides.items()
    }


def counted(run: Callable[[], None]) -> int:
    """Multiplications and additions of convolutions and matrix products."""
    counter = FlopCounterMode(display=False)
    with counter:
        run()
    return int(counter.get_total_flops())


def timed(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def share_of_arithmetic(run: Callable[[], None]) -> float:
    """Of the time that operations take: that of convolutions and matrix products."""
    with profile(activities=[ProfilerActivity.CPU]) as told:
        run()
    spent = {each.key: each.self_cpu_time_total for each in told.key_averages()}
    arithmetic = sum(
        each for name, each in spent.items() if any(word in name for word in ARITHMETIC)
    )
    return float(arithmetic / sum(spent.values()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    summary = {
        "what": "Training steps of the paper beside what the machine's arithmetic allows",
        "command": f"python benchmarks/roofline.py --rounds {options.rounds}",
        **conditions("paper", 0),
        "roofline": {name: measure(shape, options.rounds) for name, shape in SHAPES.items()},
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
