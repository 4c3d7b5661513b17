"""What held-out normal images say: where they lie, how far each part of a score deviates, which
scores and maps are usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from igd.backbones.features import Features, FrozenBackbone
from igd.data.row_buffer import RowBuffer
from igd.data.store import Pixels
from igd.inference.conformal import Calibration, threshold
from igd.inference.predictor import batch_size
from igd.progress import Progress
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.base import FeatureScale, Scale, ScaleOutput
from igd.scales.fusion import Fusion, RobustScaler
from igd.scales.position_moments import PositionMoments
from igd.scales.region_mask import RegionMask, counted

SHARPNESS = 0.5  # of the soft maximum over the parts of a score
# Quantiles that deviations of parts and of maps are taken from.
UPPER_SCORE, UPPER_PIXEL = 0.9, 0.95
SPARSE = 8  # one pixel in so many, along each axis, tells how a map's values are distributed
FEWEST_PIXELS = 200  # that tell it, where so many count
ODD = 6.0  # deviations above the median of normal images from which one is named
NAMED = 4  # odd images that a message names
MOST_NAMED = 100  # and that provenance does
CALM = 0.99  # share of a normal image's pixels that its overlay should leave uncoloured


@dataclass(frozen=True)
class Model:
    """Scales that have learnt, and the backbone they read."""

    backbone: FrozenBackbone | None
    scales: list[Scale]
    region: RegionMask | None = None  # of an image that counts

    @property
    def on_features(self) -> list[FeatureScale]:
        return [scale for scale in self.scales if isinstance(scale, FeatureScale)]

    def batches(
        self, pixels: Pixels, progress: Progress, doing: str
    ) -> Iterator[tuple[Tensor, Features | None]]:
        """Images and a frozen backbone's features of them, batch after batch."""
        indices = torch.arange(len(pixels)).split(batch_size((pixels.shape[-2], pixels.shape[-1])))
        for some in progress.track(indices, len(pixels), doing, len):
            images = pixels[some]
            yield images, self.backbone(images) if self.backbone else None

    def outputs(
        self, pixels: Pixels, progress: Progress, doing: str
    ) -> Iterator[list[ScaleOutput]]:
        """What every scale says, batch after batch."""
        for images, features in self.batches(pixels, progress, doing):
            yield [scale.score(images, features) for scale in self.scales]


def fit_fusion(
    batches: Iterable[list[ScaleOutput]], on_features: bool, region: RegionMask | None = None
) -> Fusion:
    """How far normal images deviate in each part of the score, and in each map."""
    parts, maps = RowBuffer(), RowBuffer()
    least: list[float | None] = []
    for outputs in batches:
        least = [each.least.get(part) for each in outputs for part in range(len(each.parts))]
        parts.add(torch.stack([part for output in outputs for part in output.parts], dim=1))
        every = [each for output in outputs for each in output.maps]
        if on_features:
            maps.add(torch.stack([_sparse(each, region) for each in every], dim=1))
        else:
            maps.add(torch.stack([counted(each, region).amax(dim=1) for each in every], dim=1))
    if not on_features:
        scalers = [RobustScaler.fit(*each) for each in zip(parts.all.T, least, strict=True)]
        return Fusion(scalers, [RobustScaler.fit(each) for each in maps.all.T])
    scalers = [RobustScaler.fit_upper(column, UPPER_SCORE) for column in parts.all.T]
    pixels = maps.all.transpose(0, 1).flatten(1)
    return Fusion(
        scalers, [RobustScaler.fit_upper(each, UPPER_PIXEL) for each in pixels], sharpness=SHARPNESS
    )


def _sparse(maps: Tensor, region: RegionMask | None) -> Tensor:
    """Some pixels of maps (b, rows, columns), the same of each: (b, n)."""
    if region is None:
        return maps[:, ::SPARSE, ::SPARSE].flatten(1)
    inside = counted(maps, region)
    return inside[:, :: max(1, min(SPARSE**2, inside.shape[1] // FEWEST_PIXELS))]


def measure_autoencoders(model: Model, pixels: Pixels, progress: Progress) -> None:
    """Where normal images lie in each latent space, and which errors of reconstruction are usual at
    each position.
    """
    trained = [scale for scale in model.scales if isinstance(scale, AutoEncoderScale)]
    if not trained:
        return
    moments, latents = [PositionMoments() for _ in trained], [RowBuffer() for _ in trained]
    for images, features in model.batches(pixels, progress, "measuring models"):
        for scale, maps, latent in zip(trained, moments, latents, strict=True):
            (own,) = scale.score(images, features).maps
            maps.update(own[:, None])
            if scale.settings.patch is None:
                latent.add(scale.latents(images, features))
    for scale, maps, latent in zip(trained, moments, latents, strict=True):
        scale.measure(latent.all if scale.settings.patch is None else None, maps)


def calibrate(
    batches: Iterable[list[ScaleOutput]],
    fusion: Fusion,
    rate: float,
    region: RegionMask | None = None,
) -> tuple[Fusion, Calibration]:
    """The fusion whose score of 1/2 is the threshold at this rate, and the calibration that
    promises it.

    The paper's plain sum stays as it is: its threshold is whatever the held-out images say.
    """
    deviations, peaks, levels = measured(batches, fusion, region)
    if fusion.scalers is not None:
        fusion = fusion.at_threshold(threshold(deviations, rate))
    scores = fusion.bounded(deviations).numpy()
    return fusion, Calibration(scores, peaks.numpy(), levels.mean().item(), rate)


def measured(
    batches: Iterable[list[ScaleOutput]], fusion: Fusion, region: RegionMask | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each image, how far it deviates, the highest value of its map, and the value that most of
    its map lies below: (n,) each.
    """
    deviations, peaks, levels = RowBuffer(), RowBuffer(), RowBuffer()
    for outputs in batches:
        anomaly_map = counted(fusion.map(outputs), region)
        deviations.add(fusion.deviation(outputs))
        peaks.add(anomaly_map.amax(dim=1))
        levels.add(anomaly_map.quantile(CALM, dim=1))
    return deviations.all, peaks.all, levels.all


def are_odd(scores: Tensor) -> Tensor:
    """Which normal images lie so far above the rest that they may be none: a mask."""
    values = scores.double().logit()
    return RobustScaler.fit(values)(values) > ODD


def odd_ones(scores: NDArray[np.floating]) -> list[int]:
    """The numbers of odd images, the oddest first."""
    found = torch.as_tensor(scores)
    odd = are_odd(found)
    return [number for number in found.argsort(descending=True).tolist() if odd[number]]


def odd_names(scores: NDArray[np.floating], names: Sequence[str]) -> list[str]:
    """What the odd images are called, the oddest first: for whoever wants to leave them out."""
    return [names[number] for number in odd_ones(scores)][:MOST_NAMED]


def name_odd_ones(
    calibration: Calibration, names: Sequence[str], way_out: str, progress: Progress
) -> list[str]:
    """Say which images set the threshold although they may not be normal: they are the user's to
    keep or to leave out. Returns what was said.
    """
    odd = odd_ones(calibration.scores)
    if not odd:
        return []
    lie, raise_, they_are, them = (
        ("lies", "raises", "it is", "it") if len(odd) == 1 else ("lie", "raise", "they are", "them")
    )
    return _said(
        f"{len(odd)} of {len(names)} normal images {lie} far above the rest and {raise_} the "
        f"threshold: {_first(odd, names)}; if {they_are} not normal, leave {them} out "
        f"({way_out}igd audit shows {them})",
        progress,
    )


def say_encoder_may_know(file: Path, progress: Progress) -> list[str]:
    """Say what the promise is worth if a file's encoder learnt from the images that calibrate.
    Returns what was said, which the model file keeps: the file's name, not where it lies.
    """
    return _said(
        f"{file.name}: if this encoder learnt from these images, more of others will be alarms "
        "than is promised; calibrate with images that it has not seen (--calibration-images, igd "
        "calibrate)",
        progress,
    )


def say_left_out(odd: list[int], names: Sequence[str], progress: Progress) -> list[str]:
    """Say which images are left out, and what that costs. Returns what was said."""
    return _said(
        f"left out {len(odd)} of {len(names)} images, which {'lies' if len(odd) == 1 else 'lie'} "
        f"far above the rest: "
        f"{_first(odd, names)}; what is promised holds for images like the others",
        progress,
    )


def _first(numbers: list[int], names: Sequence[str]) -> str:
    shown = ", ".join(names[number] for number in numbers[:NAMED])
    return shown + (" ..." if len(numbers) > NAMED else "")


def _said(message: str, progress: Progress) -> list[str]:
    progress.say(message)
    return [message]
