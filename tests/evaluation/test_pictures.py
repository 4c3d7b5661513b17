"""Overlays on an absolute scale, figures that parse, and a page that stands alone."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
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
