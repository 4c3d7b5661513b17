"""Large images and small defects: 40 images of 4096x3000 to learn from, and scratches two pixels
wide to find, in tiles and as a whole.

Images are drawn: a brick wall after the photograph that comes with igd, enlarged four times, at
another place each time, with noise and shading of its own. They are written as PNG to a folder that
is deleted at the end. Each row is a process of its own, so that its peak of memory is its own; it
trains, saves the model, and scores all test images with the loaded one.

python benchmarks/tiles.py --out docs/results/tiles.json
python benchmarks/tiles.py --width 2048 --height 1500 --images 20
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from igd.data.demo import photograph_of_bricks
from igd.files import write_text
from igd.inference.predictor import Prediction, Predictor
from igd.inference.regions import Region, regions

MEGABYTE = 2**20
SCRATCHES, MARKS, GOOD = 18, 6, 20  # test images
SCRATCH, MARK = 2, 12  # pixels wide
ENLARGED = 4  # times
NEAR = 2 * MARK  # pixels around a defect in which its region is taken to have found it

Pixels = NDArray[np.uint8]
Defect = tuple[int, int, int, int]  # left, upper, right, lower


@cache
def enlarged() -> Pixels:
    """The photograph and its mirror images, which fit together at all edges, enlarged: as a camera
    of many pixels shows it.
    """
    bricks = Image.fromarray(photograph_of_bricks())
    width, height = bricks.size
    large = np.asarray(
        bricks.resize((ENLARGED * width, ENLARGED * height), Image.Resampling.BICUBIC)
    )
    pixels = np.asarray(large)
    return np.pad(pixels, [(0, length) for length in pixels.shape], mode="symmetric")


def wall(rng: np.random.Generator, size: tuple[int, int]) -> Pixels:
    """Bricks from another place of the wall, under a light that falls off to one side."""
    width, height = size
    bricks = enlarged()
    rows, columns = bricks.shape
    top, left = rng.integers(0, rows), rng.integers(0, columns)
    times = (-(-(height + rows) // rows), -(-(width + columns) // columns))
    large = np.tile(bricks, times)[top : top + height, left : left + width].astype(np.float32)
    across = np.linspace(rng.uniform(0.9, 1), rng.uniform(0.9, 1), width, dtype=np.float32)
    down = np.linspace(rng.uniform(0.95, 1.05), rng.uniform(0.95, 1.05), height, dtype=np.float32)
    lit = large * across * down[:, None]
    lit += 2 * rng.standard_normal(lit.shape, dtype=np.float32)
    pixels: Pixels = lit.clip(0, 255).round().astype(np.uint8)
    return pixels


def scratched(image: Pixels, rng: np.random.Generator) -> tuple[Pixels, Defect]:
    """A straight light scratch, two pixels wide, 60 to 120 long."""
    height, width = image.shape
    angle, length = rng.uniform(0, np.pi), rng.uniform(60, 120)
    x, y = rng.uniform(0.05, 0.95) * (width - 120), rng.uniform(0.05, 0.95) * (height - 120)
    ends = [(x, y), (x + length * np.cos(angle), y + length * np.sin(angle))]
    ends = [(max(0.0, min(width - 1.0, a)), max(0.0, min(height - 1.0, b))) for a, b in ends]
    drawn = Image.fromarray(image)
    ImageDraw.Draw(drawn).line(ends, fill=225, width=SCRATCH)
    across, down = sorted(a for a, _ in ends), sorted(b for _, b in ends)
    return np.asarray(drawn), (int(across[0]), int(down[0]), int(across[1]), int(down[1]))


def marked(image: Pixels, rng: np.random.Generator) -> tuple[Pixels, Defect]:
    """A dark round mark of twelve pixels."""
    height, width = image.shape
    x, y = int(rng.integers(20, width - 40)), int(rng.integers(20, height - 40))
    drawn = Image.fromarray(image)
    ImageDraw.Draw(drawn).ellipse((x, y, x + MARK, y + MARK), fill=30)
    return np.asarray(drawn), (x, y, x + MARK, y + MARK)


def draw(folder: Path, size: tuple[int, int], images: int, seed: int = 0) -> dict[str, Defect]:
    """Write all images; returns where the defects are."""
    rng, where = np.random.default_rng(seed), dict[str, Defect]()

    def save(kind: str, number: int, pixels: Pixels) -> str:
        path = folder / kind / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, compress_level=1)
        return str(path)

    for n in range(images):
        save("train", n, wall(rng, size))
    for n in range(GOOD):
        save("good", n, wall(rng, size))
    for kind, make, count in (("scratch", scratched, SCRATCHES), ("mark", marked, MARKS)):
        for n in range(count):
            pixels, defect = make(wall(rng, size), rng)
            where[save(kind, n, pixels)] = defect
    return where


def measured(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Train and test with these parameters of the constructor."""
    from igd import IGD

    where: dict[str, Defect] = json.loads((folder / "where.json").read_text())
    model, started = folder / "model.igd", time.perf_counter()
    detector = IGD(**settings).fit(folder / "train")
    detector.save(model)
    seconds, cpu_seconds, peak = time.perf_counter() - started, time.process_time(), peak_memory()
    loaded, started = IGD.load(model), time.process_time()
    tested = {kind: tally(loaded, folder / kind, where) for kind in ("good", "scratch", "mark")}
    tiling = loaded.tiling_
    return {
        "settings": settings,
        "descriptors": None if tiling is None else "own" if tiling.size else "shared",
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "peak_mb": round(peak),
        "model_mb": round(model.stat().st_size / 1e6, 1),
        "cpu_seconds_an_image": round(
            (time.process_time() - started) / sum(each["images"] for each in tested.values()), 2
        ),
        "peak_mb_testing": round(peak_memory()),
        "promised": loaded.false_alarm_rate_,
        **tested,
    }


def tally(predictor: Predictor, folder: Path, where: dict[str, Defect]) -> dict[str, Any]:
    """How many images of a kind are alarms, of how many a region lies at the defect, and how wide
    that region is.
    """
    paths, alarms, widths = sorted(folder.glob("*.png")), 0, list[int]()
    for path in paths:
        predicted = predictor.predict(path)
        assert isinstance(predicted, Prediction)
        alarms += predicted.is_anomalous
        if str(path) in where:
            found = regions(predicted.map, predictor.pixel_threshold_)
            hits = [each for each in found if touches(each, where[str(path)])]
            widths.extend(max(each.width, each.height) for each in hits[:1])
    told: dict[str, Any] = {"images": len(paths), "alarms": alarms}
    if folder.name != "good":
        told |= {"located": len(widths), "width": int(np.median(widths)) if widths else None}
    return told


def touches(region: Region, defect: Defect) -> bool:
    left, upper, right, lower = defect
    return (
        left - NEAR < region.x + region.width
        and region.x < right + NEAR
        and upper - NEAR < region.y + region.height
        and region.y < lower + NEAR
    )


def peak_memory() -> float:
    """Of this process, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def in_a_process(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, __file__, "--one", json.dumps(settings), "--folder", str(folder)],
        check=True,
        stdout=subprocess.PIPE,
    )
    row: dict[str, Any] = json.loads(run.stdout)
    return row


def rows_asked(tile: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Tiles at these sizes, and whole images beside them."""
    return [*({"tile": tile, "image_size": size} for size in sizes), {}]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=4096, help="default: %(default)s")
    parser.add_argument("--height", type=int, default=3000, help="default: %(default)s")
    parser.add_argument("--tile", type=int, default=544, help="default: %(default)s")
    parser.add_argument(
        "--image-size",
        type=int,
        nargs="+",
        help="of what a tile becomes (default: 12/17 of its own size)",
    )
    parser.add_argument("--out", type=Path, help="a JSON file")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measured(options.folder, options.one)))
        return
    sizes = options.image_size or [384 * options.tile // 544]
    with tempfile.TemporaryDirectory(prefix="igd-tiles-") as name:
        folder = options.folder or Path(name)
        if not (folder / "where.json").exists():
            where = draw(folder, (options.width, options.height), options.images)
            (folder / "where.json").write_text(json.dumps(where))
        rows = []
        for settings in rows_asked(options.tile, sizes):
            rows.append(in_a_process(folder, settings))
            print(json.dumps(rows[-1], indent=2))
            if options.out:
                told = {
                    "what": f"{options.images} images of {options.width} x {options.height} in "
                    f"tiles of {options.tile}, and as a whole",
                    "command": f"python benchmarks/tiles.py --width {options.width} --height "
                    f"{options.height} --images {options.images} --tile {options.tile}",
                    **conditions("fast", 0),
                    "tiled": rows,
                }
                write_text(options.out, json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
