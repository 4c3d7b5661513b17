"""What a model file says about itself: where it came from, what it promises, what it was before."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd.data.tiles import Tiling
from igd.deploy.loading import load_predictor
from igd.inference.conformal import smallest_rate
from igd.inference.predictor import Predictor
from igd.inference.runtime import Runtime

BINS = 40


def model_info(path: Path) -> dict[str, Any]:
    """All of it as JSON; what a file of an older version does not say is not there."""
    predictor = load_predictor(path)
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        **predictor_info(predictor),
    }


def predictor_info(predictor: Predictor) -> dict[str, Any]:
    """What a loaded model says, wherever its file is."""
    calibration, roi = predictor.calibration_, predictor.geometry_.roi
    described = _exported(predictor) if isinstance(predictor, Runtime) else _own(predictor)
    return {
        **described,
        "side": predictor.geometry_.side,
        "shape": list(predictor.geometry_.shape),
        "fit": predictor.geometry_.fit,
        "roi": roi and roi.described(),
        "align": predictor.geometry_.align is not None,
        **_tiles(predictor.tiling_),
        "channels": predictor.channels_,
        "smallest_side": predictor.smallest_side_,
        "max_false_alarms": predictor.false_alarm_rate_,
        "lowest_rate": smallest_rate(len(calibration.scores)),
        "threshold": predictor.threshold_,
        "pixel_threshold": predictor.pixel_threshold_,
        "histogram": histogram(calibration.scores, predictor.threshold_),
    }


def _tiles(tiling: Tiling | None) -> dict[str, Any]:
    """How images are cut, where they are."""
    if tiling is None:
        return {}
    return {
        "tile": tiling.side,
        "overlap": tiling.overlap,
        "tile_descriptors": "shared" if tiling.size is None else "own",
    }


def histogram(scores: NDArray[np.floating], threshold: float) -> dict[str, Any]:
    """How many calibration images score how high, from the lowest to the highest or the
    threshold.
    """
    low, high = float(scores.min()), max(float(scores.max()), threshold)
    if not high > low:
        high = low + 1e-6
    counts, _ = np.histogram(scores, BINS, (low, high))
    return {"low": low, "high": high, "counts": counts.tolist()}


def _own(detector: Any) -> dict[str, Any]:
    """Of an `.igd` file."""
    from igd.training.calibration_history import record_of

    made = detector.provenance_
    return {
        "kind": "model",
        **detector.identity_,
        **{name: value for name, value in made.items() if not name.startswith("calibrat")},
        "warnings": [*made.get("warnings", []), *made.get("calibration_warnings", [])],
        "calibration": record_of(made, detector.calibration_).to_json(),
        "history": [each.to_json() for each in detector.fitted_.former],
    }


def _exported(runtime: Runtime) -> dict[str, Any]:
    """Of an `.onnx` file, which knows no places and no names."""
    told: dict[str, Any] = {
        "calibration": {"images": len(runtime.calibration_.scores)},
        "history": [],
    }
    told |= runtime.told_
    identity = told.pop("identity", {})
    made = {n: v for n, v in runtime.provenance_.items() if not n.startswith("calibrat")}
    return {"kind": "export", **made, **identity, **told}
