"""What it costs that OpenMP's threads spin while they wait, spin briefly and then sleep, or sleep
at once.

Processes that differ in this alone do the same work in turn, first on a machine that is left alone,
then beside processes that compute without a pause; figures are medians of the rounds. Ends by
itself.

python benchmarks/waiting.py -o docs/results/waiting.json
python benchmarks/waiting.py --rounds 1 --beside 0
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from conditions import conditions
from PIL import Image
from serving import make_model, picture, send, serving

SIDE, IMAGES, REQUESTS = 256, 16, 32
# What GNU's OpenMP, which PyTorch brings, does where nothing is set; and what our commands set.
POLICIES = {
    "spinning": {"GOMP_SPINCOUNT": "300000"},
    "briefly": {"GOMP_SPINCOUNT": "1000"},
    "sleeping": {"OMP_WAIT_POLICY": "PASSIVE"},
}

OWN = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument(
        "--beside",
        type=int,
        nargs="+",
        default=[0, 4],
        help="processes that compute beside the measured one, in turn; default: 0 and 4",
    )
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    result = {
        "what": "seconds of the same work, by what OpenMP's threads do while they wait",
        "command": f"python benchmarks/waiting.py --rounds {options.rounds}",
        **conditions("fast", 0),
        "waited": measured(options.rounds, options.beside),
    }
    for beside, rows in result["waited"].items():
        print(f"{beside:<42}" + "".join(f"{policy:>12}" for policy in POLICIES))
        for name, row in rows.items():
            print(f"{name:<42}" + "".join(f"{row[policy]:>10.2f} s" for policy in POLICIES))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def measured(rounds: int, beside: Sequence[int]) -> dict[str, Any]:
    base = {name: value for name, value in os.environ.items() if name not in OWN}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        model = make_model(Path(folder) / "stripes.igd", SIDE)
        images = [picture(SIDE, seed) for seed in range(32)]
        workers = {
            policy: subprocess.Popen(
                [sys.executable, __file__, "--work", str(model)],
                env=base | own,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for policy, own in POLICIES.items()
        }
        urls = {
            policy: servers.enter_context(serving(model, env=base | own))[0]
            for policy, own in POLICIES.items()
        }

        def served(policy: str, clients: int) -> float:
            sent = send(urls[policy], images, clients, REQUESTS)
            return REQUESTS / float(sent["images_per_second"])

        ways: dict[str, Callable[[str], float]] = {
            **{
                name: lambda policy, name=name: asked(workers[policy], name)  # type: ignore[misc]
                for name in WORK
            },
            f"serve {REQUESTS} images, 1 client": lambda policy: served(policy, 1),
            f"serve {REQUESTS} images, 8 clients": lambda policy: served(policy, 8),
        }
        rows = {}
        for count in beside:
            with computing(count):
                rows[f"processes beside it: {count}"] = in_turn(ways, rounds)
        for worker in workers.values():
            worker.communicate()
    return rows


def in_turn(ways: dict[str, Callable[[str], float]], rounds: int) -> dict[str, dict[str, float]]:
    seconds: dict[str, dict[str, list[float]]] = {}
    for turn in range(rounds):
        for name, way in ways.items():
            for policy in sorted(POLICIES, reverse=bool(turn % 2)):
                taken = way(policy)
                print(f"{turn} {name}, {policy}: {taken:.2f} s", file=sys.stderr)
                seconds.setdefault(name, {}).setdefault(policy, []).append(taken)
    return {
        name: {policy: round(median(taken), 2) for policy, taken in by.items()}
        for name, by in seconds.items()
    }


@contextmanager
def computing(count: int) -> Iterator[None]:
    """So many processes that keep a core busy each, as long as this one wants them and lives."""
    busy = "import os, sys\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(10**6))"
    processes = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def asked(worker: subprocess.Popen[str], name: str) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{name}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


WORK = (
    f"train the default, {IMAGES} images",
    "train the paper's networks, 10 steps",
    f"predict {IMAGES} images, in batches",
    f"predict {IMAGES} images, one by one",
)


def work(path: Path) -> None:
    """Do what comes on standard input, and say how long it took."""
    from igd import IGD

    model = IGD.load(path)
    images = np.stack(
        [np.asarray(Image.open(io.BytesIO(picture(SIDE, seed)))) for seed in range(IMAGES)]
    )
    small = images[:, ::4, ::4]
    ways: tuple[Callable[[], object], ...] = (
        lambda: IGD(image_size=SIDE).fit(images),
        lambda: IGD(image_size=64, scales=("global",), pretrain="scratch", steps=10).fit(small),
        lambda: model.predict(images),
        lambda: [model.predict(image) for image in images],
    )
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        started = time.perf_counter()
        dict(zip(WORK, ways, strict=True))[line.strip()]()
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
