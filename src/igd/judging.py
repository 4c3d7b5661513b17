"""Judging images with a finished model: decoding, p-values, verdicts and maps at the original size. Needs no PyTorch.

Whatever a model runs in, PyTorch or ONNX Runtime, all that surrounds it is this one class.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.calibration import p_values, threshold
from igd.data.geometry import Geometry
from igd.data.images import in_parallel
from igd.data.sources import Source, as_source
from igd.errors import UserError
from igd.progress import Progress
from igd.timing import Timing

PIXELS_AT_ONCE = 16 * 256 * 256  # scored together


@dataclass(frozen=True)
class Prediction:
    """What the detector says about one image."""

    name: str
    score: float  # in [0, 1], grows with abnormality
    p_value: float  # share of normal images that look at least as anomalous
    is_anomalous: bool  # at the detector's false-alarm rate
    map: NDArray[np.float32] = field(repr=False)  # the size of the image, in [0, 1]
    terms: dict[str, float]  # l_r and l_h of each scale, of the local one at its worst patch
    image: Image.Image | None = None  # as it was decoded, where `predictions` was asked to keep it


class Seen(NamedTuple):
    """What a model says about a batch of images at its own size."""

    score: NDArray[np.float32]  # (b,)
    map: NDArray[np.float32]  # (b, side, side)
    terms: dict[str, NDArray[np.float32]]  # (b,) each


class Readable(NamedTuple):
    """A decoded image on its way to the model."""

    square: NDArray[np.uint8]  # what the model sees of it
    size: tuple[int, int]  # width and height of the original
    image: Image.Image | None  # the original, where it is to be kept
    seconds: float  # that decoding took


class Judge(ABC):
    """A model that can judge images. Who makes one sets the attributes and says what the model sees."""

    geometry_: Geometry
    channels_: int  # 1: grey, 3: colour
    smallest_side_: int  # of an image that the model says anything about, in pixels
    calibration_scores_: Any  # of held-out normal images, as an array or a tensor
    calibration_peaks_: Any  # the highest value of each one's map
    false_alarm_rate_: float
    usual_heat_: float  # map values up to this one are usual on normal images

    @abstractmethod
    def see(self, pixels: NDArray[np.uint8]) -> Seen:
        """What the model makes of images at its own size, (b, channels, side, side)."""

    def check_ready(self) -> None:  # noqa: B027 - most are ready when they are made
        """Refuse to judge before there is anything to judge with."""

    @property
    def threshold_(self) -> float:
        """Images with a higher score are anomalous, at `false_alarm_rate_`."""
        self.check_ready()
        return threshold(self.calibration_scores_, self.false_alarm_rate_)

    @property
    def pixel_threshold_(self) -> float:
        """Map values above this are rarer than one normal image in 1 / `false_alarm_rate_`."""
        self.check_ready()
        return threshold(self.calibration_peaks_, self.false_alarm_rate_)

    @property
    def batch_(self) -> int:
        """How many images are scored together: enough to be fast, few enough for any memory."""
        return min(256, max(1, PIXELS_AT_ONCE // self.geometry_.side**2))

    def square(self, image: Image.Image) -> NDArray[np.uint8]:
        """What the model sees of an image: (side, side[, 3])."""
        return self.geometry_.to_square(image.convert("RGB" if self.channels_ == 3 else "L"))

    def predictions(
        self, images: Any, *, progress: Progress | None = None, timing: Timing | None = None, keep_images: bool = False
    ) -> Iterator[Prediction | UserError]:
        """Judge images one after another, in order; an unreadable one gives the error that says so.

        With `keep_images`, predictions carry their decoded images; of these, no more than a batch is held here.
        """
        self.check_ready()
        source = as_source(images)
        items = self._predict(source, timing or Timing(), keep_images)
        yield from (progress or Progress()).track(items, len(source), "scoring")

    def predict(self, X: Any) -> Prediction | list[Prediction]:
        """A `Prediction` for one file or one array (h, w[, 3]); a list of them for a folder, a list or (n, h, w[, 3])."""
        self.check_ready()
        one = isinstance(X, str | Path) and Path(X).is_file()
        if isinstance(X, np.ndarray) and (X.ndim == 2 or X.shape[2:] == (3,)):
            X, one = X[None], True
        judged = []
        for prediction in self.predictions(X):
            if isinstance(prediction, UserError):
                raise prediction
            judged.append(prediction)
        return judged[0] if one else judged

    def _predict(self, source: Source, timing: Timing, keep_images: bool) -> Iterator[Prediction | UserError]:
        def read(number: int) -> Readable | Exception:
            started = time.perf_counter()
            try:
                ready = self.prepared(source.names[number], source.read(number), keep_images)
            except Exception as error:  # raised in its turn, after what came before it was judged
                return error
            return ready._replace(seconds=time.perf_counter() - started)

        pending: list[tuple[str, Readable | UserError]] = []
        for name, decoded in zip(source.names, in_parallel(read, range(len(source))), strict=True):
            if isinstance(decoded, Exception) and not isinstance(decoded, UserError):
                yield from self._judge(pending, timing)
                raise decoded
            pending.append((name, decoded))
            if len(pending) == self.batch_:
                yield from self._judge(pending, timing)
                pending = []
        yield from self._judge(pending, timing)

    def _judge(self, pending: list[tuple[str, Readable | UserError]], timing: Timing) -> Iterator[Prediction | UserError]:
        readable = [decoded for _, decoded in pending if isinstance(decoded, Readable)]
        judged = self.scored(readable, timing) if readable else iter(())
        for name, decoded in pending:
            yield decoded if isinstance(decoded, UserError) else replace(next(judged), name=name)

    def prepared(self, name: str, image: Image.Image, keep_image: bool = False) -> Readable:
        """A decoded image on its way to the model, or the error that says why it can't be judged."""
        check_large_enough(name, image.size, self.smallest_side_)
        return Readable(self.square(image), image.size, image if keep_image else None, seconds=0.0)

    def scored(self, readable: list[Readable], timing: Timing) -> Iterator[Prediction]:
        """Judge decoded images as one batch; predictions come in order, and their names are the caller's business."""
        started = time.perf_counter()
        seen = self.see(stack([each.square for each in readable]))
        timing.model += time.perf_counter() - started
        timing.decoding += sum(each.seconds for each in readable)
        p_value = p_values(seen.score, self.calibration_scores_)
        limit = self.threshold_
        for n, each in enumerate(readable):
            yield Prediction(
                name="",
                score=float(seen.score[n]),
                p_value=float(p_value[n]),
                is_anomalous=bool(seen.score[n] > limit),
                map=self.geometry_.to_original(seen.map[n], *each.size),
                terms={name: float(value[n]) for name, value in seen.terms.items()},
                image=each.image,
            )


def stack(squares: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Square pixels (side, side[, 3]) as one array (n, channels, side, side)."""
    stacked = np.stack([square if square.ndim == 3 else square[:, :, None] for square in squares])
    return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))


def check_large_enough(name: str, size: tuple[int, int], smallest: int) -> None:
    """Refuse an image in which not even the smallest window of any scale finds its place."""
    if min(size) < smallest:
        raise UserError(
            f"{name}: {size[0]}x{size[1]} pixels are fewer than the similarity window allows; "
            f"the shorter side must have at least {smallest}"
        )
