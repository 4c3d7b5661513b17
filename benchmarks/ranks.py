"""One training in one process and in several, one thread each, in turn: seconds and their ratio.

The paper's model of whole images, from scratch, on images that come with igd. The share of a
training that is not divided (decoding, calibration, start of the processes) is in the figures, as a
user would wait for it. Ends by itself.

python benchmarks/ranks.py -o docs/results/ranks.json
python benchmarks/ranks.py --steps 5 --rounds 1
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from conditions import conditions

from igd.data.demo import make_demo
from igd.files import write_text

PROCESSES = (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--side", type=int, default=192, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=2, help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    seconds: dict[int, list[float]] = {count: [] for count in PROCESSES}
    with tempfile.TemporaryDirectory() as folder:
        make_demo(Path(folder) / "demo")
        for turn in range(options.rounds):
            for count in sorted(PROCESSES, reverse=bool(turn % 2)):
                seconds[count].append(trained(Path(folder), count, options.steps, options.side))
                print(f"processes: {count}: {seconds[count][-1]:.0f} s", file=sys.stderr)
    result = {
        "what": f"one training of {options.steps} steps at {options.side} pixels, one thread a "
        "process",
        "command": f"python benchmarks/ranks.py --steps {options.steps} --side {options.side} "
        f"--rounds {options.rounds}",
        **conditions("paper", 0),
        "ranks": {str(count): round(median(taken), 1) for count, taken in seconds.items()},
        "times_as_fast": round(
            median(one / two for one, two in zip(*seconds.values(), strict=True)), 2
        ),
    }
    print(json.dumps(result["ranks"]), f"{result['times_as_fast']} times as fast")
    if options.output:
        write_text(options.output, json.dumps(result, indent=2) + "\n")


def trained(folder: Path, processes: int, steps: int, side: int) -> float:
    """Seconds of `igd train`, from the command to the model."""
    model = folder / "model.igd"
    command = [sys.executable, "-m", "igd.cli", "train", str(folder / "demo" / "train" / "good")]
    command += ["-o", str(model), "--quiet", "--recipe", "paper", "--scales", "global"]
    command += ["--image-size", str(side), "--batch-size", "16"]
    command += ["--steps", str(steps), "--devices", str(processes)]
    started = time.perf_counter()
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
    taken = time.perf_counter() - started
    model.unlink()
    return taken


if __name__ == "__main__":
    main()
