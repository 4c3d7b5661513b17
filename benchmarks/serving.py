"""What serving costs: throughput and latency of `igd serve` at 1, 8 and 50 clients, beside the
model alone in the same run.

And whether the server's memory stays flat over many requests. The server is a second process on
127.0.0.1 with a model of the default recipe; every request sends one PNG. Ends by itself.

python benchmarks/serving.py -o docs/results/serving.json
python benchmarks/serving.py --requests 100 --memory-requests 200
python benchmarks/serving.py --model parts.igd --side 900 -o serving.json
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from conditions import conditions
from meter import Meter
from PIL import Image

from igd.data.geometry import stack
from igd.deploy.loading import load_predictor
from igd.inference.predictor import Predictor

LONGEST = 1200  # seconds in all; then the server is ended, whatever it does
BATCH = 16  # images that the server scores together, at most
WARM_UP = 20  # requests before anything is measured


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        type=Path,
        help="a model file (default: one that is made here, for images of --side)",
    )
    parser.add_argument(
        "--side", type=int, default=256, help="of the images that are sent (default: %(default)s)"
    )
    parser.add_argument(
        "--clients",
        type=int,
        nargs="+",
        default=[1, 8, 50],
        help="that send at once (default: 1 8 50)",
    )
    parser.add_argument(
        "--requests",
        type=int,
        default=80,
        help="a round, for each number of clients (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="in which all is measured, one after the other (default: %(default)s)",
    )
    parser.add_argument(
        "--memory-requests",
        type=int,
        default=5000,
        help="over which memory is watched (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or make_model(Path(folder) / "stripes.igd", options.side)
        predictor = load_predictor(model)
        images = [picture(options.side, seed) for seed in range(32)]
        with serving(model) as (url, process):
            send(url, images, 1, WARM_UP)
            result = {
                "what": f"igd serve, images of {options.side} x {options.side} as PNG, "
                "server and clients on the same cores",
                "command": f"python benchmarks/serving.py --requests {options.requests} "
                f"--rounds {options.rounds} --memory-requests {options.memory_requests}",
                **conditions("fast", 0),
                "model": model.name,
                "image_side": options.side,
                **in_turn(predictor, url, process.pid, images, options),
                "memory": memory(process.pid, url, images, options.memory_requests),
            }
    report(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def make_model(path: Path, side: int) -> Path:
    from igd import IGD

    images = np.stack(
        [np.asarray(Image.open(io.BytesIO(picture(side, 100 + seed)))) for seed in range(24)]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        IGD(image_size=side).fit(images).save(path)
    return path


def picture(side: int, seed: int) -> bytes:
    """Stripes of some phase, with noise, as a PNG."""
    rng = np.random.default_rng(seed)
    wave = 128 + 80 * np.sin((np.arange(side) + rng.uniform(0, 8)) * 2 * np.pi / 8)
    pixels = np.broadcast_to(wave[None, :, None], (side, side, 3)) + rng.normal(
        0, 4, (side, side, 3)
    )
    buffer = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


@contextmanager
def serving(
    model: Path, timeout: float = 120, env: dict[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own, ended afterwards and, should that fail, after `LONGEST`
    seconds.
    """
    command = [
        sys.executable,
        "-m",
        "igd.cli",
        "serve",
        str(model),
        "--port",
        "0",
        "--json",
        "--timeout",
        str(timeout),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    guard = threading.Timer(LONGEST, process.kill)
    guard.start()
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield f"{said['url']}/v1/models/{said['models'][0]}/score", process
    finally:
        guard.cancel()
        process.terminate()
        process.wait(timeout=60)


def send(url: str, images: list[bytes], clients: int, requests: int) -> dict[str, Any]:
    """Send images from so many threads, each with a connection of its own: images a second, and
    seconds a request.
    """
    address, seconds, refused = urlsplit(url), [], 0
    todo, lock = iter(range(requests)), threading.Lock()

    def client() -> None:
        nonlocal refused
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=150)
        while True:
            with lock:
                number = next(todo, None)
            if number is None:
                return
            started = time.perf_counter()
            connection.request("POST", address.path, images[number % len(images)])
            answer = connection.getresponse()
            answer.read()
            with lock:
                if answer.status == 200:
                    seconds.append(time.perf_counter() - started)
                else:
                    refused += 1

    started = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - started
    return {
        "clients": clients,
        "requests": requests,
        "refused": refused,
        "images_per_second": len(seconds) / taken,
        "p50_ms": 1e3 * float(np.percentile(seconds, 50)),
        "p99_ms": 1e3 * float(np.percentile(seconds, 99)),
    }


def in_turn(
    predictor: Predictor, url: str, pid: int, images: list[bytes], options: argparse.Namespace
) -> dict[str, Any]:
    """The model alone and each number of clients, one after the other in every round: what else the
    machine does falls on all of them. Medians of the rounds.
    """
    rounds, load = [], []
    for _ in range(options.rounds):
        load.append(round(os.getloadavg()[0], 1))
        without = [alone(predictor, images, batch) for batch in (1, BATCH)]
        served = []
        for clients in options.clients:
            meter = Meter(pid)
            sent = send(url, images, clients, options.requests)
            core_ms = 1e3 * meter.cost(options.requests).cores
            ratio = sent["images_per_second"] / without[-1]["images_per_second"]
            served.append({**sent, "core_ms": core_ms, "of_the_model_alone": ratio})
        rounds.append((without, served))
    without, served = (
        [medians(rows) for rows in zip(*each, strict=True)] for each in zip(*rounds, strict=True)
    )
    return {"model_alone": without, "served": served, "load": load}


def medians(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the same thing in every round; what was refused is summed."""
    return {
        name: sum(row[name] for row in rows)
        if name == "refused"
        else float(np.median([row[name] for row in rows]))
        if isinstance(value, float)
        else value
        for name, value in rows[0].items()
    }


def alone(predictor: Predictor, images: list[bytes], batch: int, times: int = 5) -> dict[str, Any]:
    """The model without a server, on decoded images, so many at a time."""
    pixels = stack(
        [predictor.model_input(Image.open(io.BytesIO(image))) for image in images[:batch]]
    )
    predictor.score_batch(pixels)
    meter = Meter()
    for _ in range(times):
        predictor.score_batch(pixels)
    cost = meter.cost(times * batch)
    return {
        "batch": batch,
        "ms": 1e3 * batch * cost.wall,
        "images_per_second": 1 / cost.wall,
        "core_ms": 1e3 * cost.cores,
    }


def memory(
    pid: int, url: str, images: list[bytes], requests: int, readings: int = 10
) -> list[dict[str, float]]:
    """Resident memory of the server after each tenth of the requests, of 8 clients."""
    read = []
    for part in range(readings):
        send(url, images, 8, requests // readings)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        read.append(
            {
                "requests": (part + 1) * (requests // readings),
                "mb": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            }
        )
    return read


def report(result: dict[str, Any]) -> None:
    print(f"{'':<34} {'images/s':>9} {'p50, ms':>9} {'p99, ms':>9} {'refused':>8} {'core ms':>8}")
    for row in result["model_alone"]:
        name = f"model alone, {row['batch']} at a time"
        print(
            f"{name:<34} {row['images_per_second']:>9.1f} {row['ms']:>9.1f} {row['core_ms']:>27.1f}"
        )
    for row in result["served"]:
        name = f"served, {row['clients']} clients"
        print(
            f"{name:<34} {row['images_per_second']:>9.1f} {row['p50_ms']:>9.1f} "
            f"{row['p99_ms']:>9.1f} {row['refused']:>8} {row['core_ms']:>8.1f} "
            f"{row['of_the_model_alone']:.0%} of the model alone"
        )
    first, last = result["memory"][0], result["memory"][-1]
    print(
        f"memory: {first['mb']:.0f} MB after {first['requests']} requests, {last['mb']:.0f} MB "
        f"after {last['requests']}"
    )


if __name__ == "__main__":
    main()
