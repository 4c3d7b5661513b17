"""Run the campaign, or parts of it: what was tried, and what became of it.

It is seeded and ends by itself; the full one takes three quarters of an hour of one core. A part's
rows in the JSON file are replaced, the others stay.

PYTHONPATH=benchmarks python -m torture.campaign -o docs/results/torture.json
PYTHONPATH=benchmarks python -m torture.campaign images server --count 100
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conditions import conditions

from igd.files import write_text
from torture import (
    damaged_images,
    damaged_models,
    failing_disk,
    hostile_http,
    kills,
    odd_commands,
)
from torture.materials import Materials, make_materials
from torture.tally import OUTCOMES, Tally

COLUMNS = ("tried", "refused", "survived", "unnoticed", *OUTCOMES[2:], "peak_mb", "seconds")


class Part(NamedTuple):
    run: Callable[[Materials, int, int], Iterable[Tally]]
    tries: int  # of the full campaign


PARTS = {
    "images": Part(damaged_images.torture, 10_000),
    "models": Part(damaged_models.torture, 10_000),
    "kills": Part(kills.torture, 50),
    "disk": Part(failing_disk.torture, 50),
    "server": Part(hostile_http.torture, 1_000),
    "cli": Part(odd_commands.torture, 500),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)"
    )
    parser.add_argument(
        "--count", type=int, help="cases of each part (default: the full campaign's)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--materials",
        type=Path,
        help="folder where models are made, or are already (default: none)",
    )
    parser.add_argument("-o", "--output", type=Path, help="write the table as JSON")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(
            f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    print(f"{'':<32}" + "".join(f"{name:>10}" for name in COLUMNS), flush=True)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="igd-torture-") as folder:
        materials = make_materials(options.materials or Path(folder), exported=True)
        for name in options.parts or PARTS:
            part = PARTS[name]
            rows = []
            for row in part.run(materials, options.count or part.tries, options.seed):
                rows.append(row)
                show(row)
                bad += row.wrong + row.crashed + row.hung
                if options.output:
                    keep(options.output, name, rows, options.seed)
    return 1 if bad else 0


def show(row: Tally) -> None:
    told = row.to_json()
    print(f"{row.name:<32}" + "".join(f"{told[name]:>10}" for name in COLUMNS), flush=True)
    for example in row.examples:
        print(f"    {example!r}", flush=True)


def keep(path: Path, part: str, rows: list[Tally], seed: int) -> None:
    """Replace a part's rows in the file of results."""
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"torture": {}}
    kept = {name: known["torture"].get(name) for name in PARTS}
    kept[part] = [row.to_json() for row in rows]
    result = {
        "what": "Torture: damaged files, kills, failing writes, odd command lines, bad requests",
        "command": "make torture",
        **conditions("tiny models", seed),
        "torture": {name: each for name, each in kept.items() if each is not None},
    }
    write_text(path, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
