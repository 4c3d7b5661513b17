"""How far two models disagree about the same images."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd.errors import UserError
from igd.inference.predictor import Predictor, batch_size

# A score this close to the threshold is decided by rounding: calibration images may lie on it.
TIE = 1e-6


@dataclass(frozen=True)
class Parity:
    """The largest differences over some images; scores and maps lie in [0, 1]."""

    images: int
    score: float
    map: float
    # Images that one calls anomalous and the other does not, those on the very threshold left out.
    verdicts: int
    tolerance: float  # that the scores and maps had to stay within

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.images} images: scores differ by at most {self.score:.1g}, maps by "
            f"{self.map:.1g}; "
            f"{self.verdicts} verdicts differ"
        )


def compare(
    one: Predictor,
    other: Predictor,
    pixels: NDArray[np.uint8],
    tolerance: float,
    places: NDArray[np.int64] | None = None,
) -> Parity:
    """Show both the same images or tiles, (n, channels, h, w) at the model's size, a batch at
    a time.
    """
    scores, maps, size = [], 0.0, batch_size(one.geometry_.shape)
    for first in range(0, len(pixels), size):
        part = pixels[first : first + size]
        own = None if places is None else places[first : first + size]
        ours, theirs = one.score_batch(part, own), other.score_batch(part, own)
        scores.append(np.stack([ours.score, theirs.score]))
        maps = float(np.maximum(maps, np.abs(ours.map - theirs.map).max()))  # NaN stays NaN
    ours, theirs = np.concatenate(scores, axis=1)
    decided = np.abs(ours - one.threshold_) > TIE
    return Parity(
        images=len(pixels),
        score=float(np.abs(ours - theirs).max()),
        map=maps,
        verdicts=int((decided & ((ours > one.threshold_) != (theirs > other.threshold_))).sum()),
        tolerance=tolerance,
    )


def check(parity: Parity, what: str) -> None:
    """Refuse a model that strays from its original, or says something that is not a number."""
    if not (parity.score <= parity.tolerance and parity.map <= parity.tolerance):
        raise UserError(
            f"{what}: disagrees with the original, so nothing was written: {parity}, and "
            f"{parity.tolerance:g} is allowed; "
            "a larger --tolerance accepts it"
        )
