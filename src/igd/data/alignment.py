"""Where the part lies in an image: shifted and turned how far from where it lay in training.

A small grey reference is made of the training images. An image is turned by a few small angles; for
each, phase correlation (Kuglin and Hines, 1975) says how far it is shifted, and how well it agrees
then. In NumPy and Pillow alone: a machine that only predicts needs it too.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.data.roi import Box, Size, is_within, scaled

LONGER = 128  # pixels of the reference's longer side
REACH = 0.12  # largest shift, as a share of the longer side
TURNS = (-6.0, -3.0, 0.0, 3.0, 6.0)  # degrees that are tried first, then between the best
FINEST_TURN = 0.375  # degrees
WHITENING = 0.7  # 1 is phase correlation, 0 plain correlation: smooth images have noise for phases
LOW_PASS = 0.2  # cycles a pixel; above, there is little but noise
FORGOTTEN = 0.05  # of the longer side, at most, while learning
TAPER = 0.2  # of each side, over which the edge of an image fades: it moves with no part
# What is left of 1 - correlation with the reference where a pose is better than none, and where
# one that is turned is better than one that is not.
LESS, LESS_TURNED = 0.8, 0.9

Floats = NDArray[np.float64]


class Pose(NamedTuple):
    """How far a part lies from its usual place: to the right and down, in pixels of the image, and
    turned clockwise about the image's middle, in degrees.
    """

    x: float = 0.0
    y: float = 0.0
    angle: float = 0.0


@dataclass(frozen=True)
class Alignment:
    """A reference of normal images, as a model file holds it."""

    frame: Size  # of the images that it was made of
    area: Box  # of the frame, which the reference shows: the part and some space around it
    size: Size  # of the reference
    reference: str  # its 8-bit pixels, in base64

    def __post_init__(self) -> None:
        """A file may say anything."""
        possible = (
            is_within(self.area, self.frame)
            and 0 < min(self.size) <= max(self.size) <= LONGER
            and len(base64.b64decode(self.reference, validate=True)) == math.prod(self.size)
        )
        if not possible:
            raise ValueError("an impossible reference to align with")

    @staticmethod
    def of(frame: Size, window: Box, reference: Floats) -> Alignment:
        pixels = reference.clip(0, 255).round().astype(np.uint8)
        height, width = pixels.shape
        packed = base64.b64encode(pixels.tobytes()).decode("ascii")
        return Alignment(frame, window, (width, height), packed)

    @cached_property
    def pixels(self) -> Floats:
        flat = np.frombuffer(base64.b64decode(self.reference), dtype=np.uint8)
        return flat.reshape(self.size[::-1]).astype(np.float64)

    def pose(self, image: Image.Image) -> Pose:
        """Where the part lies in an image; as usual where nothing fits better."""
        window = scaled(self.area, self.frame, image.size)
        found, _ = best_pose(small(image, window, self.size), self.pixels)
        scale = (window[2] - window[0]) / self.size[0]
        # The window turns about its own middle, the pose about the image's.
        x, y = ((window[n] + window[n + 2] - image.size[n]) / 2 for n in (0, 1))
        turned = _turned(x, y, found.angle)
        return Pose(found.x * scale + x - turned[0], found.y * scale + y - turned[1], found.angle)


def small_size(window: Box) -> Size:
    """Of the reference that shows a window."""
    width, height = window[2] - window[0], window[3] - window[1]
    scale = min(1.0, LONGER / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def small(image: Image.Image, window: Box, size: Size) -> Floats:
    """A window of an image in grey, at the reference's size."""
    part = image.resize(size, Image.Resampling.BOX, box=window)
    return np.asarray(part.convert("L"), dtype=np.float64)


def is_at_the_limit(pose: Pose, size: Size) -> bool:
    """Whether a part may lie further away, or be turned further, than can be found."""
    return (
        max(abs(pose.x), abs(pose.y)) > 0.95 * REACH * max(size)
        or abs(pose.angle) > TURNS[-1] + (TURNS[1] - TURNS[0]) / 2
    )


def best_pose(pixels: Floats, reference: Floats) -> tuple[Pose, float]:
    """The pose of an image (h, w) that agrees best with the reference, in its pixels, and the
    correlation with the reference then.
    """
    unturned = _shifted(pixels, reference, 0.0)
    known = {0.0: (unturned, agreement(pixels, reference, unturned))}

    def rating(angle: float) -> float:
        if angle not in known:
            pose = _shifted(pixels, reference, angle)
            known[angle] = pose, agreement(pixels, reference, pose)
        return known[angle][1]

    angle, step = max(TURNS, key=rating), TURNS[1] - TURNS[0]
    while step > FINEST_TURN:
        step /= 2
        angle = max((angle, angle - step, angle + step), key=rating)
    if 1 - rating(angle) > LESS_TURNED * (1 - rating(0.0)):
        angle = 0.0
    plain = agreement(pixels, reference, Pose())
    pose, rated = known[angle]
    return (pose, rated) if 1 - rated < LESS * (1 - plain) else (Pose(), plain)


def agreement(pixels: Floats, reference: Floats, pose: Pose) -> float:
    """Correlation of an image with the reference, when it is brought back from a pose."""
    window = _window(*reference.shape)
    one, other = (
        (each - (window * each).sum() / window.sum()) * np.sqrt(window)
        for each in (warped(pixels, pose), reference)
    )
    lengths = math.sqrt(float((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / max(lengths, 1e-12)


def warped(pixels: Floats, pose: Pose) -> Floats:
    """Grey pixels (h, w) brought back from a pose; the edge is repeated beyond it."""
    image = Image.fromarray(pixels.astype(np.float32))
    return np.asarray(aligned(image, pose), dtype=np.float64)


def aligned(image: Image.Image, pose: Pose) -> Image.Image:
    """An image brought back from a pose: what was at the usual place lies there. Beyond its edge
    it is mirrored.
    """
    if pose == Pose():
        return image
    margin = math.ceil(max(abs(pose.x), abs(pose.y)) + _lift(image.size, pose.angle)) + 1
    return _moved(_mirrored(image, (margin, margin), (margin, margin)), image.size, pose, margin)


def forgotten(image: Image.Image, x: int, y: int) -> Image.Image:
    """An image as if it had been shifted by so many pixels and brought back: what was out of sight
    then is mirrored.
    """
    across, down = (max(0, x), max(0, -x)), (max(0, y), max(0, -y))
    seen = image.crop((across[0], down[0], image.width - across[1], image.height - down[1]))
    return _mirrored(seen, down, across)


def drawn_shift(number: int, size: Size) -> tuple[int, int]:
    """A shift for the image of this number, the same every time. Images that are learnt from forget
    what such a shift would have hidden: else every mirrored edge would be an alarm.
    """
    reach = round(FORGOTTEN * max(size))
    x, y = np.random.default_rng(number).integers(-reach, reach + 1, 2).tolist()
    return x, y


def _mirrored(image: Image.Image, down: tuple[int, int], across: tuple[int, int]) -> Image.Image:
    """An image with so many rows and columns more before and after, mirrored at its edges."""
    pixels = np.asarray(image)
    return Image.fromarray(np.pad(pixels, (down, across, (0, 0))[: pixels.ndim], mode="symmetric"))


def brought_back(anomaly_map: NDArray[np.float32], pose: Pose) -> NDArray[np.float32]:
    """A map (h, w) of an aligned image as one of the image; 0 where the aligned one has nothing."""
    if pose == Pose():
        return anomaly_map
    image = Image.fromarray(anomaly_map)
    return np.asarray(_moved(image, image.size, _inverse(pose), 0))


def make_reference(images: Sequence[Floats]) -> tuple[Floats, float]:
    """The mean of small images (h, w), brought to one pose: that of the one most like the others;
    and how well each agrees with the mean of the others, in the median.
    """
    mean, count = np.mean(images, axis=0), len(images)
    reference = max(images, key=lambda each: agreement(each, mean, Pose()))
    for _ in range(2):
        brought = [warped(each, best_pose(each, reference)[0]) for each in images]
        reference = np.mean(brought, axis=0)
    others = [(count * reference - each) / max(count - 1, 1) for each in brought]
    rated = [agreement(*pair, Pose()) for pair in zip(brought, others, strict=True)]
    return reference, float(np.median(rated))


def _shifted(pixels: Floats, reference: Floats, angle: float) -> Pose:
    """The shift of an image that is turned by an angle."""
    turned = warped(pixels, Pose(angle=angle))
    window = _window(*reference.shape)
    spectra = [np.fft.rfft2((each - each.mean()) * window) for each in (turned, reference)]
    product = spectra[0] * spectra[1].conj()
    product *= _low_pass(*reference.shape) / np.maximum(np.abs(product), 1e-9) ** WHITENING
    surface = np.fft.fftshift(np.fft.irfft2(product, s=reference.shape))
    reach = round(REACH * max(reference.shape))
    middle = [side // 2 for side in surface.shape]
    rows, columns = (slice(max(0, at - reach), at + reach + 1) for at in middle)
    near = surface[rows, columns]
    row, column = np.unravel_index(int(near.argmax()), near.shape)
    row, column = int(row) + rows.start, int(column) + columns.start
    y = row - middle[0] + _between(surface[:, column], row)
    x = column - middle[1] + _between(surface[row], column)
    return Pose(*_turned(x, y, angle), angle)


def _between(values: Floats, at: int) -> float:
    """Where the top of a parabola through a peak and its neighbours lies, from the peak."""
    if not 0 < at < len(values) - 1:
        return 0.0
    before, peak, after = (float(each) for each in values[at - 1 : at + 2])
    curvature = before - 2 * peak + after
    return 0.0 if curvature >= 0 else max(-0.5, min(0.5, 0.5 * (before - after) / curvature))


def _moved(image: Image.Image, size: Size, pose: Pose, margin: int) -> Image.Image:
    """What an image shows at a pose, without a margin around it."""
    cosine, sine = math.cos(math.radians(pose.angle)), math.sin(math.radians(pose.angle))
    x, y = size[0] / 2, size[1] / 2
    turned = _turned(x, y, pose.angle)
    right, down = x + pose.x + margin - turned[0], y + pose.y + margin - turned[1]
    to_source = (cosine, -sine, right, sine, cosine, down)
    return image.transform(
        size, Image.Transform.AFFINE, to_source, resample=Image.Resampling.BILINEAR
    )


def _inverse(pose: Pose) -> Pose:
    return Pose(*_turned(-pose.x, -pose.y, -pose.angle), -pose.angle)


def _turned(x: float, y: float, angle: float) -> tuple[float, float]:
    """A point turned clockwise about the origin, as y points down."""
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return cosine * x - sine * y, sine * x + cosine * y


def _lift(size: Size, angle: float) -> float:
    """How far turning carries a corner, at most."""
    return math.hypot(*size) * abs(math.sin(math.radians(angle) / 2))


@lru_cache(maxsize=4)
def _window(height: int, width: int) -> Floats:
    """1 in the middle, fading to 0 at the edges."""

    def fading(side: int) -> Floats:
        place = (np.arange(side) + 0.5) / side
        ramp = np.minimum(np.minimum(place, 1 - place) / TAPER, 1)
        edge: Floats = 0.5 - 0.5 * np.cos(np.pi * ramp)
        return edge

    return np.outer(fading(height), fading(width))


@lru_cache(maxsize=4)
def _low_pass(height: int, width: int) -> Floats:
    squared = np.fft.fftfreq(height)[:, None] ** 2 + np.fft.rfftfreq(width)[None] ** 2
    passed: Floats = np.exp(-squared / (2 * LOW_PASS**2))
    return passed
