"""Peak memory of training on N and on 4 N images, whose pixels go to a file: it must not grow with N.

Images are drawn when they are asked for, each from its own seed; no image file is read. Every row is a process of its own.

python benchmarks/flat_memory.py
python benchmarks/flat_memory.py --sides 64 --images 25000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from functools import partial
from unittest.mock import patch

import numpy as np
from PIL import Image

STEPS, SCORED = 5, 16  # steps of training, images held out: the same for any N, and few


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=500, help="N (default: %(default)s)")
    parser.add_argument("--sides", type=int, nargs="+", default=[64, 256], help="of the images, in pixels")
    parser.add_argument("--held-mb", type=int, default=0, help="pixels held in memory; igd itself holds 512 (default: none)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.images, options.sides[0], options.held_mb * 2**20)))
        return
    print(f"{'side':>5} {'images':>8} {'pixels, MB':>11} {'peak memory, MB':>16} {'seconds':>8}")
    for side in options.sides:
        for count in (options.images, 4 * options.images):
            arguments = ["--one", "--images", str(count), "--sides", str(side), "--held-mb", str(options.held_mb)]
            run = subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE)
            row = json.loads(run.stdout)
            print(f"{side:>5} {count:>8} {row['pixels_mb']:>11.0f} {row['peak_mb']:>16.0f} {row['seconds']:>8.1f}", flush=True)


def measure(count: int, side: int, held: int) -> dict[str, float]:
    """Decode, train and calibrate, and say how much memory that took at its peak."""
    import warnings

    from conditions import FROM_SCRATCH

    from igd import IGD
    from igd.data.decoding import decode
    from igd.data.sources import Source

    def draw(number: int) -> Image.Image:
        return Image.fromarray(np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8))

    started = time.time()
    source = Source([str(number) for number in range(count)], draw, "the drawn images")
    with warnings.catch_warnings(), patch("igd.preparation.decode", partial(decode, held=held)):
        warnings.simplefilter("ignore")
        IGD(**FROM_SCRATCH, image_size=side, steps=STEPS, width=4, calibration=SCORED / count).fit(source)
    return {
        "pixels_mb": 3 * side * side * count / 2**20,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "seconds": time.time() - started,
    }


if __name__ == "__main__":
    main()
