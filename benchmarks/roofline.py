"""How much faster a training step of the paper could still be: the arithmetic it has to do, at the
rate of one large matrix product, beside the time it takes.

What is counted are the multiplications and additions of convolutions and matrix products, forwards
and backwards, those of MS-SSIM among them (3 % at 256 x 256), of which many of ours are with the
zeros of banded matrices. Without doing less of them, a step can't be faster than at the rate of
a large matrix product. Everything else (normalisation, activations, Adam) moves memory and comes on
top. Rate and step are measured in turn, on one thread.

python benchmarks/roofline.py --out docs/results/roofline.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from conditions import conditions
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from training_step import SHAPES, STEPS, Shape, both

from igd.files import write_text

PAPERS_WIDTH = 64
SIDE = 2048  # of the matrices whose product says what the machine can do
ARITHMETIC = ("conv", "mm", "linear", "matmul")  # in the names of operations that are counted


def measure(shape: Shape, rounds: int) -> dict[str, dict[str, float]]:
    """Ours and plain steps: arithmetic, time, rate, and the share of each in the machine's rate."""
    sides = dict(zip(("ours", "plain"), both(shape), strict=True))
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
    """CPU time, which other work on the machine changes less."""
    started = time.process_time()
    run()
    return time.process_time() - started


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
        "roofline": {
            name: measure(shape, options.rounds)
            for name, shape in SHAPES.items()
            if shape.width == PAPERS_WIDTH
        },
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
