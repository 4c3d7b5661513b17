"""A small, real data set that comes with the package: a brick wall, photographed again and again,
and defects made on it.

brick.png is a CC0 photograph (cc0textures, 'Bricks25', as prepared by the scikit-image project). As
on an inspection line, the camera looks at one place: each image is a crop of it, shifted by some
pixels, in slightly different light, with noise.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

SIDE = 192  # of a crop
PLACE = (160, 150)  # row and column of the crop
JITTER = 1  # pixels that the camera may be off, in each direction
# Images: training, normal test, and test of each defect.
TRAINING, TEST_GOOD, TEST_EACH = (
    120,
    24,
    8,
)

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]


def make_demo(folder: Path, seed: int = 0) -> Path:
    """Write the data set in MVTec's layout: train/good, test/good, test/<defect>,
    ground_truth/<defect>.
    """
    rng = np.random.default_rng(seed)
    wall = photograph_of_bricks()
    for n in range(TRAINING):
        _save(_photograph(wall, rng), folder / "train" / "good" / f"{n:03d}.png")
    for n in range(TEST_GOOD):
        _save(_photograph(wall, rng), folder / "test" / "good" / f"{n:03d}.png")
    for name, make in DEFECTS.items():
        for n in range(TEST_EACH):
            image, mask = make(_photograph(wall, rng), rng)
            _save(image, folder / "test" / name / f"{n:03d}.png")
            _save(
                (mask * 255).astype(np.uint8), folder / "ground_truth" / name / f"{n:03d}_mask.png"
            )
    return folder


def photograph_of_bricks() -> Pixels:
    with as_file(files("igd.data") / "brick.png") as path, Image.open(path) as photograph:
        return np.asarray(photograph.convert("L"))


def _photograph(wall: Pixels, rng: np.random.Generator) -> Pixels:
    """The place as the camera sees it this time."""
    top, left = PLACE + rng.integers(-JITTER, JITTER + 1, 2)
    crop = wall[top : top + SIDE, left : left + SIDE].astype(np.float64)
    lit = crop * rng.uniform(0.95, 1.05) + rng.normal(0, 1.5, crop.shape)
    return lit.clip(0, 255).round().astype(np.uint8)


def _draw(paint: Callable[[ImageDraw.ImageDraw], None], softness: float) -> NDArray[np.float64]:
    """How much of a defect is at each pixel, 0 to 1, from a shape painted in white."""
    canvas = Image.new("L", (SIDE, SIDE), 0)
    paint(ImageDraw.Draw(canvas))
    return np.asarray(canvas.filter(ImageFilter.GaussianBlur(softness)), dtype=np.float64) / 255


def _blend(image: Pixels, colour: float, amount: NDArray[np.float64]) -> tuple[Pixels, Mask]:
    mixed = image * (1 - amount) + colour * amount
    return mixed.clip(0, 255).round().astype(np.uint8), amount > 0.25


def _crack(image: Pixels, rng: np.random.Generator) -> tuple[Pixels, Mask]:
    """A dark line that wanders across bricks and mortar."""
    heading = rng.uniform(0, 2 * np.pi)
    points = [rng.uniform(0.25 * SIDE, 0.75 * SIDE, 2)]
    for _ in range(14):
        heading += rng.normal(0, 0.5)
        points.append(points[-1] + 6 * np.array([np.cos(heading), np.sin(heading)]))
    line = [(float(x), float(y)) for x, y in points]
    return _blend(image, 25.0, _draw(lambda draw: draw.line(line, fill=255, width=4), 0.7))


def _stain(image: Pixels, rng: np.random.Generator) -> tuple[Pixels, Mask]:
    """A light, soft-edged blotch, as of lime."""
    x, y = rng.uniform(0.25 * SIDE, 0.75 * SIDE, 2)
    spots = [(x + dx, y + dy, r) for dx, dy, r in rng.uniform((-12, -12, 8), (12, 12, 15), (5, 3))]

    def paint(draw: ImageDraw.ImageDraw) -> None:
        for left, top, radius in spots:
            draw.ellipse((left - radius, top - radius, left + radius, top + radius), fill=230)

    return _blend(image, 205.0, _draw(paint, 3))


def _hole(image: Pixels, rng: np.random.Generator) -> tuple[Pixels, Mask]:
    """A dark hole of irregular outline, where a piece broke out."""
    x, y = rng.uniform(0.25 * SIDE, 0.75 * SIDE, 2)
    angles = np.linspace(0, 2 * np.pi, 9)[:-1]
    radii = rng.uniform(6, 14, 8)
    outline = [(x + r * np.cos(a), y + r * np.sin(a)) for a, r in zip(angles, radii, strict=True)]
    return _blend(image, 40.0, _draw(lambda draw: draw.polygon(outline, fill=255), 1))


DEFECTS = {"crack": _crack, "stain": _stain, "hole": _hole}


def _save(pixels: Pixels, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
