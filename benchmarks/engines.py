"""What surrounds the model costs: `predictions` in one process, and workers of Ray, beside the
model alone in the same run.

Every round measures each way once, one after the other, so that whatever else the machine does
falls on all of them; figures are medians of the rounds and their ratios. The model is one of the
default recipe for images of 256 x 256, in a graph that needs no PyTorch. Ends by itself.

python benchmarks/engines.py -o docs/results/engines.json
python benchmarks/engines.py --images 64 --rounds 2
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from conditions import conditions
from meter import Cost, Meter
from PIL import Image
from serving import make_model, picture

from igd import IGD, cpu
from igd.data.geometry import stack
from igd.deploy.export import export
from igd.deploy.loading import load_predictor
from igd.engines.cluster import cluster
from igd.engines.shard_scoring import score_shards
from igd.engines.shards import Shard
from igd.evaluation.results import as_row
from igd.inference.predictor import Predictor

SIDE = 256


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=160, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {
            "what": f"images a second of {SIDE} x {SIDE} PNG files, by way of scoring them",
            "command": f"python benchmarks/engines.py --images {options.images} --rounds "
            f"{options.rounds}",
            **conditions("fast", 0),
            "cores": cpu.cores(),
            **measured(Path(folder), options.images, options.rounds),
        }
    for name, row in result["engines"].items():
        print(
            f"{name:<40}{row['images_per_second']:>7.1f} images a second"
            f"{row['of_the_model_alone']:>6.0%} of the model alone {row['core_ms']:>6.1f} core ms"
        )
    print(f"Ray, core ms an image beside predictions of one thread: {result['ray_core_ms']:.1f}")
    print(f"Ray, s from start to the first scores: {result['ray_start_seconds']:.0f}")
    print(f"memory, MB: {result['memory_mb']}")
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def measured(folder: Path, images: int, rounds: int) -> dict[str, Any]:
    names = [str(folder / f"{number:04d}.png") for number in range(images)]
    for number, name in enumerate(names):
        Path(name).write_bytes(picture(SIDE, number))
    model = folder / "stripes.onnx"
    export(IGD.load(make_model(folder / "stripes.igd", SIDE)), model)
    threads = cpu.threads()
    one, many, single = (
        load_predictor(model),
        load_predictor(model, threads),
        _with_threads(model, 1),
    )
    memory = {"this process": _memory(os.getpid())}
    ways: dict[str, Callable[[], Cost]] = {
        "model alone, a batch by all threads": lambda: score_alone(one, names),
        "model alone, a batch by each thread": lambda: score_alone(many, names),
        "model alone, one thread": lambda: score_alone(single, names),
        "predictions, a batch by all threads": lambda: predict(one, names),
        "predictions, a batch by each thread": lambda: predict(many, names),
        "predictions, one thread": lambda: predict(single, names),
    }
    # What each is compared with: the model by the same number of threads, and the better way.
    alone = {name: name.replace("predictions", "model alone") for name in ways}
    started = time.perf_counter()
    with cluster(workers=threads):
        start = _on_ray(model, one, names, 1, memory)[1] - started
        for workers in sorted({1, threads}):
            name = f"Ray, workers: {workers}"
            alone[name] = (
                f"model alone, {'one thread' if workers == 1 else 'a batch by each thread'}"
            )
            ways[name] = lambda workers=workers: _on_ray(  # type: ignore[misc]
                model, one, names, workers, memory
            )[0]
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        load = []
        for _ in range(rounds):
            load.append(round(os.getloadavg()[0], 1))
            for name, way in ways.items():
                costs[name].append(way())
    core_ms = {name: 1e3 * median(each.cores for each in all_) for name, all_ in costs.items()}
    return {
        "images": images,
        "engines": {
            name: {
                "images_per_second": 1 / median(each.wall for each in all_),
                "of_the_model_alone": median(
                    model_.wall / each.wall
                    for model_, each in zip(costs[alone[name]], all_, strict=True)
                ),
                "core_ms": core_ms[name],
            }
            for name, all_ in costs.items()
        },
        "ray_core_ms": core_ms["Ray, workers: 1"] - core_ms["predictions, one thread"],
        "ray_start_seconds": start,
        "memory_mb": memory,
        "load": load,
    }


def _with_threads(model: Path, threads: int) -> Predictor:
    from igd.inference.runtime import Runtime

    return Runtime.load(model, threads)


def score_alone(predictor: Predictor, names: list[str]) -> Cost:
    """To score images that are decoded already, nothing else."""
    squares = []
    for name in names:
        with Image.open(name) as image:
            squares.append(predictor.model_input(image))
    size = predictor.batch_
    batches = [stack(squares[n : n + size]) for n in range(0, len(squares), size)]
    meter = Meter()
    for _ in cpu.chained(lambda each: [predictor.score_batch(each)], batches, predictor.at_once_):
        pass
    return meter.cost(len(names))


def predict(predictor: Predictor, names: list[str]) -> Cost:
    """From files to rows, as `igd predict --json` makes them."""
    meter = Meter()
    for name, prediction in zip(names, predictor.predictions(names), strict=True):
        json.dumps(as_row(name, prediction, predictor))
    return meter.cost(len(names))


def _on_ray(
    model: Path, predictor: Predictor, names: list[str], workers: int, memory: dict[str, float]
) -> tuple[Cost, float]:
    """From files to rows, once every worker has given its first ones; and when that was."""
    size, seen, counted = predictor.batch_, set[str](), 0
    cut = range(0, len(names), size)
    shards = [Shard(n, names[each : each + size]) for n, each in enumerate(cut)]
    meter, cost = None, None
    for scored in score_shards(model, predictor.false_alarm_rate_, shards, workers):
        seen.add(scored.worker)
        if meter is not None:
            counted += len(scored.rows)
            cost = meter.cost(counted)  # while the workers live
        elif len(seen) == workers:
            meter = Meter(below=True)
        process = int(scored.worker.rpartition(":")[2])
        if Path(f"/proc/{process}").exists():
            memory["a worker of Ray"] = max(memory.get("a worker of Ray", 0), _memory(process))
    if meter is None or cost is None:
        raise SystemExit(f"{len(seen)} of {workers} workers had images; give more --images")
    return cost, meter.started


def _memory(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


if __name__ == "__main__":
    main()
