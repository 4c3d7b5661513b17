"""`igd predict`: score images."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import DONE, add_command, progress_of
from igd.errors import UserError

if TYPE_CHECKING:
    from igd.detector import IGD


def add(commands: Any) -> None:
    command = add_command(commands, "predict", run, "score images", "igd predict parts.igd parts/new --out results/")
    command.add_argument("model", type=Path, help="a model file")
    command.add_argument("images", type=Path, nargs="+", help="image files or folders of them")
    command.add_argument("--out", type=Path, help="folder for scores.csv and heat maps")
    command.add_argument("--strict", action="store_true", help="refuse unreadable images instead of leaving them out")


def run(options: argparse.Namespace) -> int:
    from igd.detector import IGD, Prediction
    from igd.files import make_folder

    detector = IGD.load(options.model)
    named = dict(item for given in options.images for item in _images(given, options.out))
    paths = list(named)
    out = make_folder(options.out) if options.out else None
    table = _Table(out / "scores.csv") if out else None
    failures = 0
    for path, prediction in zip(paths, detector.predictions(paths, progress=progress_of(options)), strict=True):
        if not isinstance(prediction, Prediction):
            if options.strict:
                raise prediction
            failures += 1
            print(f"igd: left out: {prediction}", file=sys.stderr)
            continue
        row = {name: getattr(prediction, name) for name in ("score", "p_value", "is_anomalous")}
        row = {"path": str(path), **row}
        if table and out:
            table.write(row)
            _write_overlay(out / named[path], path, prediction.map, detector)
        if options.json:
            print(json.dumps(row), flush=True)
        elif not table:
            verdict = "ANOMALOUS" if prediction.is_anomalous else "normal"
            print(f"{verdict:<9}  score {prediction.score:.4f}  p {prediction.p_value:.4f}  {path}", flush=True)
    if failures == len(paths):
        raise UserError(f"none of the {len(paths)} images could be read")
    if table and not options.json:
        print(f"{options.out}: scores.csv and heat maps of {len(paths) - failures} images")
    return DONE


def _images(given: Path, out: Path | None) -> list[tuple[Path, str]]:
    """The images of a file or folder, without earlier results in it, each with the name of its heat map."""
    from igd.data.images import find_images

    inside = given if given.is_dir() else given.parent
    found = [path for path in find_images(given) if out is None or out.resolve() not in path.resolve().parents]
    names = ("_".join(path.relative_to(inside).parts) for path in found)
    return [(path, name.replace(".", "_") + ".png") for path, name in zip(found, names, strict=True)]


def _write_overlay(target: Path, path: Path, heat: Any, detector: IGD) -> None:
    from igd.data.images import read_image
    from igd.evaluation.overlay import overlay
    from igd.files import atomic

    with atomic(target) as part:
        overlay(read_image(path), heat, detector.usual_heat_, detector.pixel_threshold_).save(part, format="PNG")


class _Table:
    """A CSV file that is complete up to the last row written, whatever happens next."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", newline="", encoding="utf-8")
        self.writer: csv.DictWriter[str] | None = None

    def write(self, row: dict[str, Any]) -> None:
        if self.writer is None:
            self.writer = csv.DictWriter(self.file, list(row))
            self.writer.writeheader()
        self.writer.writerow(row)
        self.file.flush()
