"""A detector on labelled images: one bad mask costs one image, and exported models are evaluated
as they are.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd import IGD
from igd.data.reading import read_dataset
from igd.evaluation.evaluate import evaluate
from igd.evaluation.report import write_report
from igd.inference.predictor import BatchScores, Predictor
from igd.progress import Progress


class Told(Progress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


class Exported(Predictor):
    """What an exported model knows, around a detector that scores."""

    def __init__(self, detector: IGD) -> None:
        self.detector = detector
        self.geometry_, self.channels_ = detector.geometry_, detector.channels_
        self.smallest_side_, self.calibration_ = detector.smallest_side_, detector.calibration_
        self.provenance_ = {"made_by": "igd", "backbone": "none"}

    def score_batch(self, pixels: np.ndarray) -> BatchScores:
        return self.detector.score_batch(pixels)


def test_a_mask_that_says_nothing_costs_one_image(
    fitted: IGD, category: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(category, tmp_path / "stripes")
    masks, told = folder / "ground_truth" / "spot", Told()
    whole = evaluate(fitted, read_dataset(folder).test_samples(), told).metrics
    assert told.lines == []
    (masks / "001_mask.png").unlink()
    Image.new("L", (32, 32)).save(masks / "002_mask.png")
    (masks / "003_mask.png").write_bytes(b"nothing")
    metrics = evaluate(fitted, read_dataset(folder).test_samples(), told).metrics
    (line,) = told.lines
    assert line.startswith("3 masks are missing or can't be used")
    assert all(f"00{number}" in line for number in (1, 2, 3))
    assert (whole["n_masks"], metrics["n_masks"]) == (10, 7)
    assert metrics["image_auroc"] == whole["image_auroc"]
    without = [
        sample
        for sample in read_dataset(category).test_samples()
        if not (sample.label and Path(sample.identifier).stem in ("001", "002", "003"))
    ]
    assert metrics["aupro"] == evaluate(fitted, without).metrics["aupro"]


def test_an_exported_model_is_evaluated_and_reported(
    fitted: IGD, category: Path, tmp_path: Path
) -> None:
    samples = read_dataset(category).test_samples()
    evaluation = evaluate(Exported(fitted), samples)
    assert evaluation.metrics == evaluate(fitted, samples).metrics
    write_report(tmp_path / "report.html", Exported(fitted), evaluation, "parts")
    page = (tmp_path / "report.html").read_text()
    head = page[: page.index("Scores, latents, training")]
    for sentence in evaluation.metrics["summary"]:
        assert sentence in head
    assert "promised rate of false alarms" in head
    assert head.index("defects are missed") < head.index("image AUROC")


@pytest.mark.parametrize("name", ["summary", "at_promised_rates", "misses", "false_alarms"])
def test_metrics_gained_names(fitted: IGD, category: Path, name: str) -> None:
    assert name in evaluate(fitted, read_dataset(category).test_samples()[8:12]).metrics
