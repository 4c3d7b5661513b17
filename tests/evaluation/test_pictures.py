"""Overlays on an absolute scale, figures that parse, and a page that stands alone."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd import IGD
from igd.data.reading import read_dataset
from igd.evaluation import figures
from igd.evaluation.evaluate import evaluate
from igd.evaluation.overlay import overlay
from igd.evaluation.report import write_report


def test_what_is_usual_looks_calm_and_the_threshold_is_red() -> None:
    image = Image.new("RGB", (8, 8), (90, 100, 110))
    heat = np.full((8, 8), 0.3, dtype=np.float32)
    assert overlay(image, heat, usual=0.3, threshold=0.6).tobytes() == image.tobytes()
    heat[2, 3], heat[5, 5] = 0.7, 0.4
    coloured = np.asarray(overlay(image, heat, usual=0.3, threshold=0.6)).astype(int)
    red, green, _ = coloured[2, 3]
    assert red > 200 > 50 > green
    assert coloured[5, 5, 1] > 100  # yellowish
    assert (coloured[0] == (90, 100, 110)).all()


def test_figures_are_well_formed() -> None:
    groups = {"anomalous": np.array([0.5, 0.9]), "normal": np.array([0.1, 0.2, 0.2])}
    pictures = [
        figures.histogram(groups, 0.4, "score", "scores & <more>"),
        figures.curve([0, 0.5, 1], [0, 0.9, 1], "x", "y", "curve", diagonal=True),
        figures.lines({"loss": np.array([3.0, 2.0, 1.0])}, "steps", "loss", "losses"),
        figures.histogram({"a": np.array([0.5]), "b": np.array([0.5])}, 0.5, "score", "all the same"),
        figures.histogram({"anomalous": np.array([]), "normal": np.array([0.5])}, 0.5, "score", "one group is empty"),
        figures.points(np.array([[0.0, 1.0], [2.0, 1.0]]), ["good", "<odd>"], ["good", "<odd>"], "points & <more>"),
    ]
    for picture in pictures:
        assert ElementTree.fromstring(picture).tag == "svg"


def test_report_stands_alone_and_escapes_names(fitted: IGD, category: Path, tmp_path: Path) -> None:
    evaluation = evaluate(fitted, read_dataset(category).test_samples())
    path = tmp_path / "report.html"
    write_report(path, fitted, evaluation, "stripes <script>")
    page = path.read_text()
    assert "<script" not in page
    assert "http" not in page
    assert "stripes &lt;script&gt;" in page
    assert page.count("data:image/webp;base64,") >= 8
    assert f"{evaluation.metrics['image_auroc']:.3f}" in page


def test_points_name_and_count_every_kind_and_gather_the_last_ones() -> None:
    kinds = [f"kind {number}" for number in range(10)]
    picture = figures.points(np.random.default_rng(0).normal(size=(20, 2)), kinds * 2, kinds, "points")
    for name in (*[f"kind {number} (2)" for number in range(6)], "other kinds (8)"):
        assert name in picture
    assert picture.count('class="point') == 20 + 7


def test_report_shows_latents_by_kind_and_intervals(fitted: IGD, category: Path, tmp_path: Path) -> None:
    evaluation = evaluate(fitted, read_dataset(category).test_samples())
    write_report(tmp_path / "report.html", fitted, evaluation, "stripes")
    page = (tmp_path / "report.html").read_text()
    assert "Latents of the global model" in page
    assert "good (10)" in page
    assert "spot (10)" in page
    low, high = evaluation.metrics["intervals_95"]["miss_rate"]
    assert f"{low:.3f} to {high:.3f}" in page


@pytest.mark.parametrize("kind", ["good", "spot"])
def test_a_test_set_of_one_kind_is_evaluated_as_far_as_possible(
    fitted: IGD, category: Path, tmp_path: Path, kind: str
) -> None:
    evaluation = evaluate(fitted, [sample for sample in read_dataset(category).test_samples() if sample.kind == kind])
    assert evaluation.metrics["image_auroc"] is None
    assert "all 10 test images are" in evaluation.metrics["undefined"]
    rates = {"good": "false_alarm_rate", "spot": "miss_rate"}
    assert list(evaluation.metrics["intervals_95"]) == [rates[kind]]
    write_report(tmp_path / "report.html", fitted, evaluation, "one kind")
    assert "all 10 test images are" in (tmp_path / "report.html").read_text()
