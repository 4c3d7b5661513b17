"""Time and memory of training as the number of images grows: time should grow with it, memory
should not.

Images are drawn when they are asked for, each from its own seed; no image file is read. Every row
is a process of its own.

python benchmarks/growth.py --images 200 2000 20000 --out docs/results/growth.json
python benchmarks/growth.py --side 64 --images 25000 100000 --pretrain scratch --steps 5
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

MEGABYTE = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=int, nargs="+", default=[200, 2000, 20_000], help="default: %(default)s"
    )
    parser.add_argument(
        "--side", type=int, default=256, help="of the images, in pixels (default: %(default)s)"
    )
    parser.add_argument("--pretrain", help="default: the recipe's")
    parser.add_argument("--steps", type=int, help="of training (default: the recipe's)")
    parser.add_argument("--out", type=Path, help="a JSON file; a picture is drawn beside it")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(
            json.dumps(measured(options.images[0], options.side, options.pretrain, options.steps))
        )
        return
    rows = []
    for count in options.images:
        rows.append(in_a_process(count, options))
        report(rows, options)  # what is done is kept, whatever happens to the rest


def in_a_process(count: int, options: argparse.Namespace) -> dict[str, float]:
    """A run of its own, so that its peak of memory is its own."""
    settings = [
        f"--side={options.side}",
        *(["--pretrain", options.pretrain] if options.pretrain else []),
    ]
    settings += ["--steps", str(options.steps)] if options.steps else []
    run = subprocess.run(
        [sys.executable, __file__, "--one", "--images", str(count), *settings],
        check=True,
        stdout=subprocess.PIPE,
    )
    row: dict[str, float] = json.loads(run.stdout)
    return row


def measured(count: int, side: int, pretrain: str | None, steps: int | None) -> dict[str, float]:
    """Decode, train and calibrate, and say how long that took and how much memory at its peak."""
    import warnings

    from igd import IGD
    from igd.data.sources import Source

    def draw(number: int) -> Image.Image:
        """Soft noise, so that there is something to learn at every size."""
        coarse = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        return Image.fromarray(coarse).resize((side, side), Image.Resampling.BILINEAR)

    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = Source([str(number) for number in range(count)], draw, "the drawn images")
        IGD(pretrain=pretrain, steps=steps).fit(source)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
    return {
        "images": count,
        "pixels_mb": 3 * side**2 * count / MEGABYTE,
        "seconds": round(seconds, 1),
        "peak_mb": round(peak),
    }


def report(rows: list[dict[str, float]], options: argparse.Namespace) -> None:
    """Print, write and draw what was measured so far."""
    from conditions import conditions

    from igd.files import write_text

    chosen = f" --pretrain {options.pretrain}" if options.pretrain else ""
    chosen += f" --steps {options.steps}" if options.steps else ""
    summary = {
        "what": f"training on more and more images of {options.side} x {options.side}, "
        "calibration included",
        "command": f"python benchmarks/growth.py --side {options.side} "
        f"--images {' '.join(map(str, options.images))}{chosen}",
        **conditions("fast", 0),
        "growth": rows,
    }
    print(json.dumps(rows[-1]), flush=True)
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")
        write_text(options.out.with_suffix(".svg"), picture(rows))


def picture(rows: list[dict[str, Any]]) -> str:
    """Time and memory, each as a share of the most that any run took, over the number of images."""
    from igd.evaluation.figures import LINE, PALETTE, legend, new_axes, to_svg
    from igd.evaluation.svg import standalone

    images = [row["images"] for row in rows]
    axes = new_axes("training images", "share of the most", (0, 1.06 * max(images)), (0, 1.05))
    names = []
    for colour, what, name, unit in (
        ("a", "time", "seconds", "s"),
        ("b", "memory", "peak_mb", "MB"),
    ):
        most = max(row[name] for row in rows)
        shares = [row[name] / most for row in rows]
        axes.plot(images, shares, color=PALETTE[colour], linewidth=LINE)
        names.append(f"{what}, at most {most:,.0f} {unit}")
    legend(axes, names, "lower right")
    return standalone(to_svg(axes, "growth of time and memory"))


if __name__ == "__main__":
    main()
