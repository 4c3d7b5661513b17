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
    parser.add_argument("--images", type=int, default=128, help="default: %(default)s")
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
    for name, value in result["images_per_second"].items():
        ratio = result["of_the_model_alone"][name]
        print(f"{name:<44}{value:>8.1f} images a second {ratio:>8.0%} of the model alone")
    print(f"Ray, ms an image beside predictions of one thread: {result['ray_overhead_ms']:.1f}")
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
    alone, at_once = "model alone, a batch by all threads", "model alone, a batch by each thread"
    ways: dict[str, Callable[[], float]] = {
        alone: lambda: score_alone(one, names),
        at_once: lambda: score_alone(many, names),
        "predictions, a batch by all threads": lambda: predict(one, names),
        "predictions, a batch by each thread": lambda: predict(many, names),
        "predictions, one thread": lambda: predict(single, names),
    }
    started = time.perf_counter()
    memory = {"this process": _memory(os.getpid())}
    with cluster(workers=threads):
        first = _on_ray(model, one, names, 1, memory)
        start = time.perf_counter() - started - first
        for workers in sorted({1, threads}):
            ways[f"Ray, workers: {workers}"] = lambda workers=workers: _on_ray(  # type: ignore[misc]
                model, one, names, workers, memory
            )
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                seconds[name].append(way())
    speed = {name: images / median(each) for name, each in seconds.items()}
    beside = 1e3 / speed["predictions, one thread"]
    return {
        "images": images,
        "images_per_second": speed,
        "of_the_model_alone": {name: each / speed[alone] for name, each in speed.items()},
        "of_the_model_alone_by_each_thread": {
            name: each / speed[at_once] for name, each in speed.items()
        },
        "ray_overhead_ms": 1e3 / speed["Ray, workers: 1"] - beside,
        "ray_start_seconds": start,
        "memory_mb": memory,
    }


def _with_threads(model: Path, threads: int) -> Predictor:
    from igd.inference.runtime import Runtime

    return Runtime.load(model, threads)


def score_alone(predictor: Predictor, names: list[str]) -> float:
    """Seconds to score images that are decoded already, nothing else."""
    squares = []
    for name in names:
        with Image.open(name) as image:
            squares.append(predictor.square(image))
    size = predictor.batch_
    batches = [stack(squares[n : n + size]) for n in range(0, len(squares), size)]
    started = time.perf_counter()
    for _ in cpu.chained(lambda each: [predictor.score_batch(each)], batches, predictor.at_once_):
        pass
    return time.perf_counter() - started


def predict(predictor: Predictor, names: list[str]) -> float:
    """Seconds from files to rows, as `igd predict --json` makes them."""
    started = time.perf_counter()
    for name, prediction in zip(names, predictor.predictions(names), strict=True):
        json.dumps(as_row(name, prediction, predictor))
    return time.perf_counter() - started


def _on_ray(
    model: Path, predictor: Predictor, names: list[str], workers: int, memory: dict[str, float]
) -> float:
    """Seconds from the first scores to the last, for as many images as `names`: each worker starts
    with a batch that is not counted.
    """
    size = predictor.batch_
    warm = [Shard(number, names[:size]) for number in range(workers)]
    cut = range(0, len(names), size)
    shards = [Shard(workers + n, names[each : each + size]) for n, each in enumerate(cut)]
    started, rate = 0.0, predictor.false_alarm_rate_
    every = score_shards(model, rate, [*warm, *shards], workers)
    for counted, scored in enumerate(every, start=1):
        if counted == workers:
            started = time.perf_counter()
        process = int(scored.worker.rpartition(":")[2])
        if scored.number == workers + len(shards) - 1:
            memory["a worker of Ray"] = _memory(process)
    return time.perf_counter() - started


def _memory(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


if __name__ == "__main__":
    main()
