"""How long `igd --help` takes to answer, beside Python itself doing nothing, and what the imports
behind the commands cost.

python benchmarks/startup.py --out docs/results/startup.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from conditions import conditions

from igd.files import write_text

STARTED = {
    "python, doing nothing": ["-c", "pass"],
    "igd --help": ["-m", "igd.cli", "--help"],
    "igd train --help": ["-m", "igd.cli", "train", "--help"],
    "import igd.inference.runtime": ["-c", "import igd.inference.runtime"],
    "from igd import IGD": ["-c", "from igd import IGD"],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in STARTED}
    for _ in range(options.rounds + 1):
        for name, arguments in STARTED.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - started)
    summary = {
        "what": "wall-clock seconds until a process has answered and ended, started in turn",
        "command": f"python benchmarks/startup.py --rounds {options.rounds}",
        **conditions("none", 0),
        "seconds": {
            name: round(median(each[1:]), 3) for name, each in seconds.items()
        },  # the first round warms the disk
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
