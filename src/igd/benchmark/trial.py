"""One run, honestly: a method is shown training images, then test images, and never a label; labels
are read when it is done.
"""

from __future__ import annotations

import platform
import resource
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray

from igd.benchmark.benchmark_data import find_data
from igd.benchmark.methods import Method, Support
from igd.benchmark.run import Run, made_by
from igd.benchmark.suites import config_hash_of, find_method
from igd.data.sample import Sample, UnusableMask
from igd.errors import TrainingWarning, UserError
from igd.evaluation.metrics import PixelMetrics, image_metrics
from igd.inference.conformal import smallest_rate, threshold
from igd.version import __version__

UNIT = ("accuracy_at_half",)  # metrics that mean something for scores in [0, 1] only
# And for methods that choose a threshold:
AT_THRESHOLD = ("f1_at_threshold", "false_alarm_rate", "miss_rate")
PROMISED_PERCENT = (1, 5, 10)  # false alarms, at which misses are counted


def carry_out(run: Run, path: Path, support: Support) -> dict[str, Any]:
    """Train, score, measure: the result, and what it cost."""
    kind = find_method(run.method)
    changed = kind.source and config_hash_of(kind, run.settings) != run.config_hash
    if changed or run.made_by != made_by():
        what = run.method if changed else "igd"
        raise UserError(
            f"{what}: has changed since this run was planned; the same command plans it anew"
        )
    dataset = find_data(run.data).read(path, run.normal, run.protocol, run.seed)
    train, test = dataset.training_samples(), dataset.test_samples()
    method = kind(run.settings, run.seed, support)
    forget_peak_memory()
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method.fit(blind(train))
        trained = time.perf_counter()
        scores, located, unusable = predict(method, test)
    scored = time.perf_counter()
    return {
        "metrics": {**measure(method, test, scores), **located},
        "images": {
            "training": len(train),
            "normal": sum(not sample.label for sample in test),
            "anomalous": sum(sample.label for sample in test),
        },
        **({"unusable_masks": unusable} if unusable else {}),
        "protocols": [step.to_json() for step in dataset.steps],
        "method": method.details(),
        "seconds": {"training": round(trained - started, 2), "scoring": round(scored - trained, 2)},
        "peak_memory_mb": peak_memory_mb(),
        "threads": torch.get_num_threads(),
        "versions": {
            "igd": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "machine": platform.platform(),
        "warnings": [
            str(each.message) for each in caught if issubclass(each.category, TrainingWarning)
        ],
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def blind(samples: Sequence[Sample]) -> list[Sample]:
    """The same images without kind, label, mask or telling name."""
    return [Sample(str(number), sample.image) for number, sample in enumerate(samples)]


def predict(
    method: Method, test: Sequence[Sample]
) -> tuple[NDArray[np.float64], dict[str, float], dict[str, str]]:
    """Scores of the test images, metrics of the maps, and the masks that these leave out, with the
    reason; a mask is opened when its image has been scored.
    """
    pixels, has_masks = PixelMetrics(), any(sample.mask is not None for sample in test)
    scores, unusable = [], {}
    for sample, predicted in zip(test, method.score(blind(test)), strict=True):
        scores.append(predicted.score)
        if has_masks and predicted.map is not None:
            height, width = predicted.map.shape
            try:
                mask = sample.read_mask((width, height))
            except UnusableMask as error:
                unusable[sample.identifier] = str(error)
                continue
            if mask is not None:
                pixels.add(predicted.map, mask)
    located = {name: value for name, value in pixels.results().items() if value is not None}
    return np.array(scores, dtype=np.float64), located, unusable


def measure(
    method: Method, test: Sequence[Sample], scores: NDArray[np.float64]
) -> dict[str, float]:
    """Image metrics: here, and only here, the test labels are read."""
    labels = np.array([sample.label for sample in test])
    own = np.inf if method.threshold is None else method.threshold
    without = (
        *(() if method.unit_scores else UNIT),
        *(AT_THRESHOLD if method.threshold is None else ()),
    )
    found = {
        name: value
        for name, value in image_metrics(labels, scores, own).items()
        if name not in without
    }
    if method.calibration_scores is not None:
        found |= promised_metrics(labels, scores, method.calibration_scores)
    return {name: value for name, value in found.items() if value is not None}


def promised_metrics(
    labels: NDArray[np.int64], scores: NDArray[np.float64], calibration: NDArray[np.floating]
) -> dict[str, float | None]:
    """Misses and false alarms at each promised rate that so many calibration scores can keep."""
    found: dict[str, float | None] = {}
    for percent in PROMISED_PERCENT:
        rate = percent / 100
        if rate < smallest_rate(len(calibration)) - 1e-9:
            continue
        at_rate = image_metrics(labels, scores, threshold(calibration, rate))
        for name in ("miss_rate", "false_alarm_rate"):
            found[f"{name}_at_{percent}_percent"] = at_rate[name]
    return found


def forget_peak_memory() -> None:
    """Start the peak anew, so that it is this run's; where the system can't, it is that of all runs
    in this process so far.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> int:
    """The most memory that this process has held, what earlier runs left allocated included."""
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
