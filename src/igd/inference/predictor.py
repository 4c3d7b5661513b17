"""Predicting with a finished model: decoding, p-values, verdicts and maps at the original size.

Whatever a model runs in, PyTorch or ONNX Runtime, all that surrounds it is this one class.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from igd.cpu import chained
from igd.data.alignment import Pose
from igd.data.geometry import Geometry, stack
from igd.data.sources import as_source
from igd.data.tiles import Tiling, check_tile_fits
from igd.errors import DamagedModel, UserError
from igd.inference.batches import BatchReader, DecodedImage
from igd.inference.conformal import Calibration
from igd.inference.mismatch import mismatches
from igd.inference.tiled import PIXELS_AT_ONCE, TiledScores, score_in_tiles, tile_batches
from igd.progress import Progress


@dataclass(frozen=True)
class Prediction:
    """What the detector says about one image."""

    name: str
    score: float  # in [0, 1], grows with abnormality
    p_value: float  # share of normal images that look at least as anomalous
    is_anomalous: bool  # at the detector's false-alarm rate
    map: NDArray[np.float32] = field(repr=False)  # the size of the image, in [0, 1]
    # What scales measured, such as l_r and l_h, of the local scale at its worst patch; which of it
    # counts in the score, and how much, is the model's to say.
    terms: dict[str, float]
    image: Image.Image | None = None  # as it was decoded, where `predictions` was asked to keep it
    # How it differs from the images that the model learnt from, and what of it was not read.
    mismatches: tuple[str, ...] = ()
    pose: Pose | None = None  # of the part, where the model aligns images


class BatchScores(NamedTuple):
    """Scores of images at the model's size."""

    score: NDArray[np.float32]  # (b,)
    map: NDArray[np.float32]  # (b, rows, columns)
    terms: dict[str, NDArray[np.float32]]  # (b,) each


@dataclass
class Timing:
    """Seconds spent on predicting, summed over threads."""

    decoding: float = 0.0  # beside the model
    model: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, decoding: float, model: float) -> None:
        with self._lock:
            self.decoding += decoding
            self.model += model


class Predictor(ABC):
    """A model that can predict. Who makes one sets the attributes and scores batches."""

    geometry_: Geometry
    tiling_: Tiling | None = None  # how an image is cut; None: it is read as a whole
    channels_: int  # 1: grey, 3: colour
    smallest_side_: int  # of an image that the model says anything about, in pixels
    calibration_: Calibration
    provenance_: dict[str, Any]  # when and from what it was made
    at_once_: int = 1  # batches that `predictions` has scored at the same time

    @abstractmethod
    def score_batch(
        self, pixels: NDArray[np.uint8], places: NDArray[np.int64] | None = None
    ) -> BatchScores:
        """Score images or tiles at the model's size, (b, channels, rows, columns). Where each place
        has a descriptor of its own, the numbers of the tiles' places are needed.
        """

    def check_ready(self) -> None:  # noqa: B027 - most are ready when they are made
        """Refuse to predict before there is anything to predict with."""

    @property
    def threshold_(self) -> float:
        """Images with a higher score are anomalous, at `false_alarm_rate_`."""
        self.check_ready()
        return self.calibration_.threshold

    @property
    def pixel_threshold_(self) -> float:
        """Map values above this are rarer than one normal image in 1 / `false_alarm_rate_`."""
        self.check_ready()
        return self.calibration_.pixel_threshold

    @property
    def false_alarm_rate_(self) -> float:
        self.check_ready()
        return self.calibration_.false_alarm_rate

    @property
    def max_false_alarms(self) -> float | None:
        """The accepted share of false alarms. Another one moves the thresholds, as far as the
        calibration images can promise it; scores and p-values stay as they are.
        """
        return self.false_alarm_rate_

    @max_false_alarms.setter
    def max_false_alarms(self, rate: float | None) -> None:
        self.calibration_ = self.calibration_.at_rate(rate)

    @property
    def identity_(self) -> dict[str, Any]:
        """What made a result, as far as the model knows."""
        return {name: self.provenance_.get(name) for name in ("backbone", "made_by")}

    @property
    def background_level_(self) -> float:
        """Map values up to this one are usual on normal images."""
        self.check_ready()
        return self.calibration_.background_level

    @property
    def batch_(self) -> int:
        """Images that are scored together; of those in tiles, the tiles are."""
        return 1 if self.tiling_ else batch_size(self.geometry_.shape)

    def predict(self, X: Any) -> Prediction | list[Prediction]:
        """A `Prediction` for one image: a file, an array (h, w[, 3]), a tensor ([3,] h, w), a PIL
        image, encoded bytes or an open file. A list of them for a folder, a list, a generator, a
        data loader, or an array (n, h, w[, 3]).
        """
        self.check_ready()
        source, predicted = as_source(X), []
        for prediction in self.predictions(source):
            if isinstance(prediction, UserError):
                raise prediction
            predicted.append(prediction)
        return predicted[0] if source.single else predicted

    def predictions(
        self,
        images: Any,
        *,
        progress: Progress | None = None,
        timing: Timing | None = None,
        keep_images: bool = False,
        skip: Container[int] = (),
    ) -> Iterator[Prediction | UserError]:
        """Predict one image after another, in order; an unreadable one gives the error that says
        so.

        With `keep_images`, predictions carry their decoded images; of these, no more than the
        batches that are being scored are held here. Images whose numbers are in `skip` are left
        out, and the others are scored in the batches they would have been in: to the last digit, a
        score depends on its batch.
        """
        self.check_ready()
        source, spent = as_source(images), timing or Timing()
        reader = BatchReader(self.decoded, source, self.batch_, keep_images, skip)
        yield from chained(
            lambda batch: compress(
                self.predicted(reader.named(batch), spent), reader.wanted(batch)
            ),
            reader.batches(progress or Progress()),
            self.at_once_,
        )

    def predicted(
        self, images: Sequence[tuple[str, DecodedImage | UserError]], timing: Timing
    ) -> Iterator[Prediction | UserError]:
        """Predict named images as one batch, in order; those that are errors stay errors. Of images
        in tiles, each is a batch.
        """
        if self.tiling_ and len(images) > 1:
            for each in images:
                yield from self.predicted([each], timing)
            return
        decoded = [(name, image) for name, image in images if isinstance(image, DecodedImage)]
        scored: Iterator[Prediction] = iter(())
        if decoded:
            started = time.perf_counter()
            inputs = [image.pixels for _, image in decoded]
            scores: BatchScores | TiledScores
            if self.tiling_:
                (pixels,) = inputs
                scores = score_in_tiles(self.score_batch, pixels, self.tiling_, self.geometry_)
            else:
                scores = self.score_batch(stack(inputs))
            in_model = time.perf_counter() - started
            timing.add(sum(image.seconds for _, image in decoded), in_model)
            scored = self._predictions(decoded, scores)
        for _, image in images:
            yield image if isinstance(image, UserError) else next(scored)

    def _predictions(
        self, images: list[tuple[str, DecodedImage]], scores: BatchScores | TiledScores
    ) -> Iterator[Prediction]:
        p_values, limit = self.calibration_.p_values(scores.score), self.threshold_
        for number, (name, image) in enumerate(images):
            score = float(scores.score[number])
            if not np.isfinite(score) or not np.isfinite(scores.map[number]).all():
                raise DamagedModel(
                    f"{name}: its score is {score:g} or its map holds no numbers: the model is "
                    f"damaged"
                )
            yield Prediction(
                name=name,
                score=score,
                p_value=float(p_values[number]),
                is_anomalous=score > limit,
                map=scores.map[number]
                if self.tiling_
                else self.geometry_.to_original(scores.map[number], *image.size, image.pose),
                terms={term: float(value[number]) for term, value in scores.terms.items()},
                image=image.image,
                mismatches=image.mismatches,
                pose=image.pose,
            )

    def model_input(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels of an image at the model's size: (rows, columns[, 3])."""
        return self._model_input(image, self.geometry_.pose(image))

    def _model_input(self, image: Image.Image, pose: Pose | None) -> NDArray[np.uint8]:
        return self.geometry_.to_model(self._converted(image), pose)

    def model_inputs(
        self, name: str, image: Image.Image
    ) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64] | None]]:
        """All that the model reads of an image, (b, channels, rows, columns), batch after batch; of
        tiles with their places, where each has a descriptor of its own.
        """
        if self.tiling_ is None:
            yield stack([self.model_input(image)]), None
            return
        check_tile_fits(name, image.size, self.tiling_)
        pixels = np.asarray(self._converted(image))
        for tiles, places in tile_batches(pixels, self.tiling_, self.geometry_):
            yield tiles, None if self.tiling_.size is None else places

    def _converted(self, image: Image.Image) -> Image.Image:
        return image.convert("RGB" if self.channels_ == 3 else "L")

    def decoded(self, name: str, image: Image.Image, keep_image: bool = False) -> DecodedImage:
        """An image on its way to the model, or the error that says why nothing can be predicted for
        it.
        """
        self.geometry_.check(name, image.size, self.smallest_side_)
        if self.tiling_:
            check_tile_fits(name, image.size, self.tiling_)
        pose = self.geometry_.pose(image)
        return DecodedImage(
            np.asarray(self._converted(image)) if self.tiling_ else self._model_input(image, pose),
            image.size,
            image if keep_image else None,
            mismatches=mismatches(image, getattr(self, "provenance_", {}), self.geometry_, pose),
            pose=pose,
        )


def batch_size(shape: tuple[int, int]) -> int:
    """How many images of so many rows and columns are scored together: enough to be fast, few
    enough for any memory.
    """
    return min(256, max(1, PIXELS_AT_ONCE // math.prod(shape)))
