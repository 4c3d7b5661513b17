"""The picture of the README, from the output of `igd demo`: test images above, what the detector
says below.

igd demo && python docs/pictures/make.py igd-demo
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

from igd import IGD, Prediction
from igd.data.decoding import read_image
from igd.evaluation.overlay import overlay

SHOWN = (
    "stain/001",
    "stain/006",
    "hole/002",
    "hole/005",
    "crack/001",
    "good/003",
)  # by number, not by result
SIDE, GAP = 192, 8


def main(demo: Path) -> None:
    detector = IGD.load(demo / "bricks.igd")
    sheet = Image.new("RGB", (len(SHOWN) * (SIDE + GAP) - GAP, 2 * SIDE + GAP), "white")
    for column, name in enumerate(SHOWN):
        path = demo / "bricks" / "test" / f"{name}.png"
        image, prediction = read_image(path), detector.predict(path)
        assert isinstance(prediction, Prediction)
        coloured = overlay(
            image, prediction.map, detector.background_level_, detector.pixel_threshold_
        )
        sheet.paste(image, (column * (SIDE + GAP), 0))
        sheet.paste(coloured, (column * (SIDE + GAP), SIDE + GAP))
    sheet.quantize(256).save(Path(__file__).with_name("demo.png"), optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
