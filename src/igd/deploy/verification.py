"""Whether a model file is what it was when it was made: its checksum, and its scores of known
images.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from igd.deploy.loading import load_predictor
from igd.errors import DamagedModel
from igd.inference.runtime import Runtime

TOLERANCE = 1e-3  # of scores, between machines; a model that was quantised brings its own


@dataclass(frozen=True)
class Verified:
    """What could be checked of a file that has no fault."""

    path: str
    has_checksum: bool  # files of older versions have none
    images: int  # scored again; of an exported model, which keeps no images, one of noise
    difference: float  # the largest, between a score and the one it had when the model was made

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def verify(path: Path) -> Verified:
    """Read a model and score again what it was tried on; raises `UserError` for a damaged one."""
    predictor = load_predictor(path)  # checks the checksum
    tolerance, places = TOLERANCE, None
    if isinstance(predictor, Runtime):
        has_checksum, known = bool(predictor.is_checked), predictor.probe_score_
        pixels, places = predictor.probe[: 0 if known is None else 1], predictor.probe_places
        expected = np.array([] if known is None else [known])
        tolerance = max(tolerance, (predictor.parity_ or {}).get("tolerance", 0))
    else:
        from igd.detector import IGD
        from igd.files.tensors import has_checksum as in_file

        assert isinstance(predictor, IGD)
        has_checksum, pixels = in_file(path), predictor.fitted_.examples.numpy()
        expected, kept = predictor.fitted_.example_scores.numpy(), predictor.fitted_.example_places
        places = None if kept is None else kept.numpy()
    scores = [
        predictor.score_batch(
            pixels[n : n + 1], None if places is None else places[n : n + 1]
        ).score
        for n in range(len(pixels))
    ]
    found = np.concatenate(scores) if scores else np.array([])
    difference = float(np.abs(found - expected).max()) if scores else 0.0
    if not difference <= tolerance:
        raise DamagedModel(
            f"{path}: damaged, or this machine computes otherwise: an image that it was tried on "
            f"when it was made scores {difference:g} off, and {tolerance:g} is allowed"
        )
    return Verified(str(path), has_checksum, len(scores), difference)
