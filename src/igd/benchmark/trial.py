"""One run, honestly: a method sees training images, then test images, and never a label; labels are read when it is done."""

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

from igd.benchmark.datasets import find_data
from igd.benchmark.method import Method, Support
from igd.benchmark.methods import find_method, meaning_of
from igd.benchmark.runs import Run
from igd.data.samples import Sample
from igd.errors import TrainingWarning, UserError
from igd.evaluation.metrics import PixelMetrics, image_metrics
from igd.version import __version__

UNIT = ("accuracy_at_half",)  # metrics that mean something for scores in [0, 1] only
AT_THRESHOLD = ("f1_at_threshold", "false_alarm_rate", "miss_rate")  # and for methods that choose a threshold


def carry_out(run: Run, path: Path, support: Support) -> dict[str, Any]:
    """Train, score, measure: the result, and what it cost."""
    made_by = find_method(run.method)
    if made_by.source and meaning_of(made_by, run.settings) != run.meaning:
        raise UserError(f"{run.method}: has changed since this run was planned; the same command plans it anew")
    dataset = find_data(run.data).read(path, run.normal, run.protocol, run.seed)
    train, test = dataset.training_samples(), dataset.test_samples()
    method = made_by(run.settings, run.seed, support)
    forget_peak_memory()
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method.fit(blind(train))
        trained = time.perf_counter()
        scores, located = judge(method, test)
    scored = time.perf_counter()
    return {
        "metrics": {**measure(method, test, scores), **located},
        "images": {
            "training": len(train),
            "normal": sum(not sample.label for sample in test),
            "anomalous": sum(sample.label for sample in test),
        },
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
        "warnings": [str(each.message) for each in caught if issubclass(each.category, TrainingWarning)],
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def blind(samples: Sequence[Sample]) -> list[Sample]:
    """The same images without kind, label, mask or telling name."""
    return [Sample(str(number), sample.image) for number, sample in enumerate(samples)]


def judge(method: Method, test: Sequence[Sample]) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Scores of the test images, and metrics of the maps; a mask is opened when its image has been judged."""
    pixels, has_masks = PixelMetrics(), any(sample.mask is not None for sample in test)
    scores = []
    for sample, said in zip(test, method.score(blind(test)), strict=True):
        scores.append(said.score)
        if has_masks and said.map is not None:
            height, width = said.map.shape
            mask = sample.read_mask((width, height))
            if mask is not None:
                pixels.add(said.map, mask)
    located = {name: value for name, value in pixels.results().items() if value is not None}
    return np.array(scores, dtype=np.float64), located


def measure(method: Method, test: Sequence[Sample], scores: NDArray[np.float64]) -> dict[str, float]:
    """Image metrics: here, and only here, the test labels are read."""
    labels = np.array([sample.label for sample in test])
    threshold = np.inf if method.threshold is None else method.threshold
    without = (*(() if method.unit_scores else UNIT), *(AT_THRESHOLD if method.threshold is None else ()))
    found = image_metrics(labels, scores, threshold)
    return {name: value for name, value in found.items() if value is not None and name not in without}


def forget_peak_memory() -> None:
    """Start the peak anew, so that it is this run's; where the system can't, it is that of all runs in this process so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> int:
    """The most memory that this process has held, what earlier runs left allocated included."""
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
