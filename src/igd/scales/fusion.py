"""Several scales, one score and one map: each part is scaled by how far held-out normal images
deviate in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from igd.method.scoring import image_score, localisation_map, scale_score
from igd.scales.base import LEAST_LOG_MAD, ScaleOutput

# Deviations above the median that make a score of 1/2, where calibration says nothing else.
DEFAULT_THRESHOLD = 3.0
LEAST_MAD = 0.02  # of the median: a few held-out images may lie closer together by chance


@dataclass(frozen=True)
class RobustScaler:
    """The median and the deviation of a part's values for normal images."""

    median: float
    mad: float  # median absolute deviation, or an upper one, scaled to a Gaussian's sigma

    @staticmethod
    def fit(values: Tensor, least: float | None = None) -> RobustScaler:
        """Median statistics: a few odd images among the normal ones do no harm. Without a least
        deviation it is a share of the median.
        """
        median = values.double().median()
        mad = 1.4826 * (values.double() - median).abs().median()
        if least is None:
            least = max(LEAST_MAD * abs(float(median)), 1e-9)
        return RobustScaler(float(median), max(float(mad), least))

    @staticmethod
    def fit_upper(values: Tensor, quantile: float) -> RobustScaler:
        """The deviation is that of an upper quantile, as logarithms of distances are skewed."""
        ordered = values.double().sort().values
        median = ordered[len(ordered) // 2]
        upper = ordered[min(len(ordered) - 1, round(quantile * len(ordered)))]
        gaussian = math.sqrt(2) * torch.erfinv(torch.tensor(2 * quantile - 1)).item()
        return RobustScaler(float(median), max(float(upper - median) / gaussian, LEAST_LOG_MAD))

    def __call__(self, values: Tensor) -> Tensor:
        """Values in deviations above the median."""
        return (values - self.median) / self.mad


@dataclass(frozen=True)
class Fusion:
    """How parts become one score and maps one map. Without scalers they are averaged as they are:
    the paper's sum.
    """

    scalers: list[RobustScaler] | None = None  # of every part of every scale, in order
    map_scalers: list[RobustScaler] | None = None  # of every map
    threshold: float = DEFAULT_THRESHOLD  # deviations that make a score of 1/2
    # Of the soft maximum that lets one strongly deviating part speak; None: a mean over scales.
    sharpness: float | None = None

    def __post_init__(self) -> None:
        if self.sharpness is not None and self.scalers is None:
            raise ValueError("the soft maximum is one of scaled parts, and there are no scalers")

    def at_threshold(self, threshold: float) -> Fusion:
        return replace(self, threshold=threshold)

    def centred_like(self, other: Fusion) -> Fusion:
        """The same deviations above the medians of another fusion of the same parts."""
        return replace(
            self,
            scalers=_centred(self.scalers, other.scalers),
            map_scalers=_centred(self.map_scalers, other.map_scalers),
        )

    def deviation(self, outputs: Sequence[ScaleOutput]) -> Tensor:
        """All parts as one number, in deviations above what is normal: (b,)."""
        parts = [part for output in outputs for part in output.parts]
        if self.sharpness is not None:
            return self.soft_maximum(parts)
        each = iter(parts if self.scalers is None else _scaled(self.scalers, parts))
        return image_score(
            [
                scale_score([next(each) for _ in output.parts], output.weights)
                for output in outputs
                if output.parts  # some scales make a map alone
            ]
        )

    def soft_maximum(self, parts: Sequence[Tensor]) -> Tensor:
        """The deviation, where one strongly deviating part speaks for all: (b,)."""
        assert self.scalers is not None
        assert self.sharpness is not None
        scaled = _scaled(self.scalers, parts)
        together: Tensor = torch.logsumexp(self.sharpness * torch.stack(scaled), dim=0)
        return (together - math.log(len(scaled))) / self.sharpness

    def bounded(self, deviation: Tensor) -> Tensor:
        """A deviation as a score in (0, 1), 1/2 at the threshold; the paper's sum lies there as it
        is.
        """
        return deviation if self.scalers is None else softsign(deviation, self.threshold)

    def unbounded(self, score: Tensor) -> Tensor:
        """The reverse of `bounded`."""
        return score if self.scalers is None else inverse_softsign(score, self.threshold)

    def score(self, outputs: Sequence[ScaleOutput]) -> Tensor:
        """The score of each image: eq. 13, (b,)."""
        return self.bounded(self.deviation(outputs))

    def map(self, outputs: Sequence[ScaleOutput]) -> Tensor:
        """The anomaly map of each image: eq. 16, (b, rows, columns)."""
        maps = [each for output in outputs for each in output.maps]
        weights = [weight for output in outputs for weight in output.map_weights]
        if self.map_scalers is None:
            return localisation_map(maps, weights)
        return softsign(localisation_map(_scaled(self.map_scalers, maps), weights))


def softsign(deviation: Tensor, threshold: float = DEFAULT_THRESHOLD) -> Tensor:
    """Any deviation as a score in (0, 1): rising everywhere, 1/2 at the threshold, never quite 0 or
    1.
    """
    excess = (deviation - threshold) / DEFAULT_THRESHOLD
    return 0.5 * (1 + excess / (1 + excess.abs()))


def inverse_softsign(score: Tensor, threshold: float = DEFAULT_THRESHOLD) -> Tensor:
    """The deviation that has a score."""
    signed = 2 * score - 1
    return threshold + DEFAULT_THRESHOLD * signed / (1 - signed.abs())


def _centred(
    scalers: list[RobustScaler] | None, others: list[RobustScaler] | None
) -> list[RobustScaler] | None:
    if scalers is None or others is None:
        return scalers
    return [
        replace(scaler, median=other.median) for scaler, other in zip(scalers, others, strict=True)
    ]


def _scaled(scalers: Sequence[RobustScaler], values: Sequence[Tensor]) -> list[Tensor]:
    return [scaler(value) for scaler, value in zip(scalers, values, strict=True)]
