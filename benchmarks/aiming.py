"""What a region of interest and alignment are worth: AUROC, misses and false alarms on test images
as they are, and on the same shifted and turned.

python benchmarks/aiming.py mvtec/capsule=12,84,232,86 mvtec/screw --out aiming.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from conditions import conditions
from PIL import Image
from sklearn.metrics import roc_auc_score

from igd import IGD
from igd.data.alignment import Pose, aligned
from igd.data.reading import read_dataset
from igd.errors import UserError
from igd.files import write_text

SHIFT, TURN = 8 / 256, 3.0  # of the longer side, and degrees


def movements(count: int, side: int) -> dict[str, list[Pose]]:
    """Ways of moving images, a pose for each; what comes into sight is mirrored."""
    rng = np.random.default_rng(0)
    signs, reach = rng.choice([-1, 1], (count, 2)), SHIFT * side
    anywhere = rng.uniform(-1, 1, (count, 3))
    return {
        "as it is": [Pose()] * count,
        "shifted": [Pose(*(reach * sign)) for sign in signs],
        "turned": [Pose(angle=TURN * sign) for sign in signs[:, 0]],
        "both": [Pose(*(reach * each[:2]), TURN * each[2]) for each in anywhere],
    }


def rated(detector: IGD, images: list[Image.Image], labels: np.ndarray) -> Iterator[Any]:
    """Each movement, and what the detector makes of images that were moved so."""
    for name, poses in movements(len(images), max(images[0].size)).items():
        moved = [aligned(image, pose) for image, pose in zip(images, poses, strict=True)]
        scores = -detector.score_samples(moved)
        alarms = scores > detector.threshold_
        yield (
            name,
            {
                "image_auroc": round(float(roc_auc_score(labels, scores)), 4),
                "miss_rate": round(float((~alarms[labels == 1]).mean()), 4),
                "false_alarm_rate": round(float(alarms[labels == 0].mean()), 4),
            },
        )


def measured(folder: Path, box: str) -> dict[str, Any]:
    dataset = read_dataset(folder)
    images = [sample.read() for sample in dataset.test_samples()]
    labels = np.array([sample.label for sample in dataset.test_samples()])
    ways: dict[str, dict[str, Any]] = {"default": {}, "align": {"align": True}}
    if box:
        ways |= {"roi": {"roi": box}, "roi and align": {"roi": box, "align": True}}
    found: dict[str, Any] = {}
    for way, parameters in ways.items():
        try:
            detector = IGD(fit_to="resize", **parameters).fit(dataset)
        except UserError as error:
            found[way] = {"refused": str(error).partition(": ")[2]}
            continue
        found[way] = dict(rated(detector, images, labels))
        print(folder.name, way, json.dumps(found[way]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", help="data sets in MVTec's layout, FOLDER[=x,y,w,h]")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for given in options.sets:
        folder, _, box = given.partition("=")
        results[Path(folder).name] = measured(Path(folder), box)
        write_text(options.out, json.dumps(described(results, options.sets), indent=1) + "\n")


def described(results: dict[str, Any], sets: list[str]) -> dict[str, Any]:
    named = " ".join(each.rpartition("/")[2] for each in sets[: len(results)])
    return {
        "what": "A region of interest and alignment: test images as they are, shifted by 8 of 256 "
        "pixels along both axes, turned by 3 degrees, and up to both",
        "command": f"python benchmarks/aiming.py {named} --out FILE",
        **conditions("fast", 0),
        "aimed": results,
    }


if __name__ == "__main__":
    main()
