"""What `igd predict` and `igd watch` do with each prediction: rows, lines, counts, and whether
images still look like those that calibrated the model.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.errors import UserError
from igd.text import visible

if TYPE_CHECKING:
    from igd.evaluation.results import Results
    from igd.inference.predictor import Prediction, Predictor


def made_from(model: Path, predictor: Predictor) -> dict[str, Any]:
    """What rows come from: those of another model or rate don't belong in one table."""
    return {
        "model": hashlib.sha256(model.read_bytes()).hexdigest(),
        "max_false_alarms": predictor.false_alarm_rate_,
    }


class Verdicts:
    """Takes predictions one after another."""

    def __init__(
        self,
        predictor: Predictor,
        results: Results | None,
        *,
        as_json: bool,
        shown: bool,
        strict: bool = False,
    ) -> None:
        """Rows go to `results`, where there are any; a line for each image is printed where they
        are `shown`. A `strict` one refuses what can't be read or differs from training images.
        """
        from igd.evaluation.results import Tally
        from igd.inference.drift import DriftMonitor

        self.predictor, self.results, self.as_json = predictor, results, as_json
        self.shown, self.strict = shown, strict
        self.tally = results.tally if results else Tally()
        self.images, self.differing = 0, Counter[str]()
        self.drift = DriftMonitor(predictor.calibration_)
        for row in results.rows() if results else ():  # a restart forgets nothing
            if not row["error"]:
                self.drift.update(float(row["score"]), row["is_anomalous"] in (True, "True"))

    def add(self, path: str, name: str, predicted: Prediction | UserError) -> bool:
        """A row for an image, whose anomaly map is called `name`; true with the image that makes a
        drift noticed.
        """
        from igd.evaluation.results import as_row
        from igd.inference.mismatch import check_mismatch

        self.images, noticed = self.images + 1, False
        if isinstance(predicted, UserError):
            if self.strict:
                raise predicted
            print(f"igd: unreadable: {visible(predicted)}", file=sys.stderr)
        else:
            noticed = self.drift.update(predicted.score, predicted.is_anomalous)
            self.differing.update(predicted.mismatches)
            if self.strict:
                check_mismatch(path, predicted.mismatches)
        row = as_row(path, predicted, self.predictor)
        if self.results:
            self.results.write(name, row, predicted)
        else:
            self.tally.add(row)
        if self.as_json:
            print(json.dumps(row), flush=True)
        elif self.shown and not isinstance(predicted, UserError):
            print(verdict_line(path, predicted), flush=True)
        return noticed

    def say_drift(self) -> None:
        """Say that images have changed, as long as they have."""
        if self.drift.notice:
            print(f"igd: {self.drift.notice}", file=sys.stderr)

    def close(self) -> None:
        """What is to be said of all images together."""
        from igd.inference.mismatch import counted_lines

        for line in counted_lines(self.differing, self.images):
            print(f"igd: {line}", file=sys.stderr)
        print(f"igd: {self.tally}", file=sys.stderr)


def verdict_line(path: str, predicted: Prediction) -> str:
    verdict = "ANOMALOUS" if predicted.is_anomalous else "normal"
    return f"{verdict:<9}  score {predicted.score:.4f}  p {predicted.p_value:.4f}  {visible(path)}"
