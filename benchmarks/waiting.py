"""What it costs that OpenMP's threads sleep while they wait (OMP_WAIT_POLICY=PASSIVE), or spin.

Two processes that differ in this alone do the same work in turn, on whatever the machine has left;
figures are medians of the rounds, and ratios in the same run. Run it on a busy machine and on an
idle one: the file says how much else there was to do. Ends by itself.

python benchmarks/waiting.py -o docs/results/waiting.json
python benchmarks/waiting.py --rounds 1
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
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from conditions import conditions
from PIL import Image
from serving import make_model, picture, send, serving

SIDE, IMAGES, REQUESTS = 256, 16, 32
# What GNU's OpenMP, which PyTorch brings, does where nothing is set; and what our commands set.
POLICIES = {"spinning": {"GOMP_SPINCOUNT": "300000"}, "sleeping": {"OMP_WAIT_POLICY": "PASSIVE"}}

OWN = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
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
        **measured(options.rounds),
    }
    for name, row in result["waited"].items():
        print(f"{name:<42}{row['spinning']:>8.2f} s{row['sleeping']:>8.2f} s{row['ratio']:>7.2f} x")
    print(f"load of the machine, in turn: {result['load']}")
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def measured(rounds: int) -> dict[str, Any]:
    base = {name: value for name, value in os.environ.items() if name not in OWN}
    seconds: dict[str, dict[str, list[float]]] = {}
    load = []
    with tempfile.TemporaryDirectory() as folder:
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
        with (
            serving(model, env=base | POLICIES["spinning"]) as (spinning, _),
            serving(model, env=base | POLICIES["sleeping"]) as (sleeping, _),
        ):
            urls = {"spinning": spinning, "sleeping": sleeping}

            def served(policy: str, clients: int) -> float:
                return REQUESTS / send(urls[policy], images, clients, REQUESTS)["images_per_second"]

            ways: dict[str, Callable[[str], float]] = {
                **{
                    name: lambda policy, name=name: asked(workers[policy], name)  # type: ignore[misc]
                    for name in WORK
                },
                f"serve {REQUESTS} images, 1 client": lambda policy: served(policy, 1),
                f"serve {REQUESTS} images, 8 clients": lambda policy: served(policy, 8),
            }
            for turn in range(rounds):
                for name, way in ways.items():
                    for policy in sorted(POLICIES, reverse=bool(turn % 2)):
                        taken = way(policy)
                        print(f"{turn} {name}, {policy}: {taken:.2f} s", file=sys.stderr)
                        seconds.setdefault(name, {}).setdefault(policy, []).append(taken)
                load.append(round(os.getloadavg()[0], 1))
        for worker in workers.values():
            worker.communicate()
    rows = {
        name: {which: median(all_) for which, all_ in by.items()} for name, by in seconds.items()
    }
    return {
        "load": load,
        "waited": {
            name: {
                **row,
                "ratio": median(
                    one / other
                    for one, other in zip(*(seconds[name][each] for each in POLICIES), strict=True)
                ),
            }
            for name, row in rows.items()
        },
    }


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
