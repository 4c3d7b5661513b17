"""Overlays on an absolute scale, figures that parse, and a page that stands alone."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igd import IGD
from igd.data.reading import read_dataset
from igd.evaluation import figures
from igd.evaluation.colour_bar import colour_bar
from igd.evaluation.evaluate import evaluate
from igd.evaluation.overlay import OUTLINE, TRUTH, coloured_map, outline, overlay, with_truth
from igd.evaluation.report import write_report
from igd.evaluation.svg import standalone

GREY = (90, 100, 110)


def coloured(anomaly_map: np.ndarray, usual: float = 0.3, threshold: float = 0.6) -> np.ndarray:
    image = Image.new("RGB", anomaly_map.shape[::-1], GREY)
    return np.asarray(overlay(image, anomaly_map, usual, threshold)).astype(int)


def test_what_is_usual_looks_calm() -> None:
    assert (coloured(np.full((8, 8), 0.3, dtype=np.float32)) == GREY).all()


def test_colour_grows_from_the_usual_to_the_strongest_and_hides_nothing() -> None:
    values = np.full((20, 80), 0.2, dtype=np.float32)
    for number, value in enumerate((0.45, 0.65, 0.8, 1.0)):
        values[4:16, 20 * number + 4 : 20 * number + 16] = value
    painted = coloured(values)
    faint, low, high, most = (painted[10, 20 * number + 10] for number in range(4))
    assert faint[0] > GREY[0]  # a little yellow
    assert low[1] > high[1] > most[1]  # from yellow to red
    assert GREY[0] < faint[0] < low[0] < high[0] < most[0]
    dark = Image.new("RGB", (80, 20), (20, 20, 20))
    beneath = np.asarray(overlay(dark, values, 0.3, 0.6)).astype(int)
    assert np.abs(beneath[10, 70] - most).max() > 20  # what lies under the strongest colour is seen


def test_an_outline_goes_round_what_lies_above_the_threshold() -> None:
    values = np.full((20, 20), 0.55, dtype=np.float32)
    values[5:15, 5:15] = 0.9
    painted = coloured(values)
    at_border = (painted == OUTLINE).all(axis=2)
    assert at_border[5, 5:15].all()
    assert at_border[5:15, 14].all()
    assert at_border.sum() == 36
    assert not outline(np.ones((8, 8), dtype=bool)).any()  # the image's own edge is no border


def test_the_outline_is_seen_on_black() -> None:
    values = np.full((20, 20), 0.2, dtype=np.float32)
    values[5:15, 5:15] = 0.9
    painted = np.asarray(overlay(Image.new("RGB", (20, 20)), values, 0.3, 0.6)).astype(int)
    assert (painted[4, 5:15] > 100).all()  # pale, beside the dark line
    assert not painted[2].any()


def test_the_ground_truth_is_a_dashed_line_outside_of_its_mask() -> None:
    mask = np.zeros((40, 60), dtype=bool)
    mask[10:30, 20:50] = True
    drawn = np.asarray(with_truth(Image.new("RGB", (60, 40), GREY), mask))
    changed = (drawn != GREY).any(axis=2)
    np.testing.assert_array_equal(changed, outline(~mask))
    assert not (changed & mask).any()  # the defect stays visible
    for side in (drawn[9, 20:50], drawn[30, 20:50], drawn[10:30, 19], drawn[10:30, 50]):
        assert {tuple(map(int, pixel)) for pixel in side} == set(TRUTH)
    nothing = with_truth(Image.new("RGB", (60, 40), GREY), np.zeros_like(mask))
    assert (np.asarray(nothing) == GREY).all()


# Machado, Oliveira and Fernandes (2009), severity 1, of linear RGB.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}


def lightness(pixels: np.ndarray, vision: str) -> np.ndarray:
    """CIE L* of sRGB pixels (n, 3) as seen with this vision."""
    scaled = pixels / 255
    linear = np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)
    seen = (linear @ np.array(VISION[vision]).T).clip(0, 1)
    return 116 * np.cbrt((seen @ [0.2126, 0.7152, 0.0722]).clip(0.008856)) - 16


@pytest.mark.parametrize("vision", VISION)
def test_maps_get_darker_all_the_way_to_whoever_sees_few_colours(vision: str) -> None:
    values = np.repeat(np.linspace(0.3, 0.6 + 0.75 * 0.4, 41, dtype=np.float32), 5)
    row = np.asarray(coloured_map(values[None].repeat(3, axis=0), 0.3, 0.6))[1]
    seen = lightness(row[~(row == OUTLINE).all(axis=1)], vision)
    steps = np.diff(seen[np.insert(np.diff(seen) != 0, 0, True)])
    assert len(steps) >= 39
    assert (steps < 0).all()
    assert seen[0] - seen[-1] > 35
    light, dark = lightness(np.array(TRUTH), vision)
    assert light - dark > 40  # dashes


def test_a_tall_image_is_painted_without_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random((50, 30)).astype(np.float32)
    whole = coloured(values)
    monkeypatch.setattr("igd.evaluation.overlay.BAND", 7)
    np.testing.assert_array_equal(coloured(values), whole)


def test_figures_are_well_formed() -> None:
    groups = {"anomalous": np.array([0.5, 0.9]), "normal": np.array([0.1, 0.2, 0.2])}
    pictures = [
        figures.histogram(groups, 0.4, "score", "scores & <more>"),
        figures.curve([0, 0.5, 1], [0, 0.9, 1], "x", "y", "curve", diagonal=True),
        figures.lines({"loss": np.array([3.0, 2.0, 1.0])}, "steps", "loss", "losses"),
        figures.histogram(
            {"a": np.array([0.5]), "b": np.array([0.5])}, 0.5, "score", "all the same"
        ),
        figures.histogram(
            {"anomalous": np.array([]), "normal": np.array([0.5])},
            0.5,
            "score",
            "one group is empty",
        ),
        figures.points(
            np.array([[0.0, 1.0], [2.0, 1.0]]),
            ["good", "<odd>"],
            ["good", "<odd>"],
            "points & <more>",
        ),
    ]
    for picture in pictures:
        drawn = ElementTree.fromstring(picture)
        assert drawn.tag == "svg"
        assert drawn.get("role") == "img"
        assert drawn.get("aria-label")
        assert {each.text for each in drawn.iter("text")}  # text, not outlines of letters
        assert "DejaVu" not in picture


def test_the_same_figure_is_the_same_text_and_colours_follow_the_page() -> None:
    once, again = (
        figures.curve([0, 0.5, 1], [0, 0.9, 1], "x", "y", "curve", diagonal=True) for _ in range(2)
    )
    assert once == again
    assert "stroke: var(--a, #c0392b)" in once
    assert "http" not in once


@pytest.mark.parametrize(
    "drawn",
    [figures.lines({"loss": np.ones(3)}, "steps", "loss", "losses"), colour_bar(0.3, 0.6)],
    ids=["figure", "colour bar"],
)
def test_a_picture_stands_alone_too(drawn: str) -> None:
    picture = standalone(drawn)
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    *_, width, height = map(float, root.get("viewBox", "").split())
    assert float(root.get("width", "")) / width == float(root.get("height", "")) / height > 0
    assert "var(" not in picture


def test_a_curve_standing_alone_keeps_its_colour() -> None:
    drawn = figures.lines({"loss": np.ones(3)}, "steps", "loss", "losses")
    assert "stroke: #c0392b" in standalone(drawn)


def test_figures_in_one_page_share_no_names() -> None:
    pictures = [
        figures.curve([0, 1], [0, 1], "x", "y", "one"),
        figures.curve([0, 1], [1, 0], "x", "y", "other"),
    ]
    one, other = (set(re.findall(r' id="([^"]+)"', each)) for each in pictures)
    assert one
    assert not one & other


def test_report_stands_alone_and_escapes_names(fitted: IGD, category: Path, tmp_path: Path) -> None:
    evaluation = evaluate(fitted, read_dataset(category).test_samples())
    path = tmp_path / "report.html"
    write_report(path, fitted, evaluation, "stripes <script>")
    page = path.read_text()
    assert "<script" not in page
    assert not re.search("https?:", page)
    assert "default-src 'none'; img-src data:" in page
    assert "stripes &lt;script&gt;" in page
    assert page.count("data:image/webp;base64,") >= 8
    assert f"{evaluation.metrics['image_auroc']:.3f}" in page


def test_points_name_and_count_every_kind_and_gather_the_last_ones() -> None:
    kinds = [f"kind {number}" for number in range(10)]
    picture = figures.points(
        np.random.default_rng(0).normal(size=(20, 2)), kinds * 2, kinds, "points"
    )
    for name in (*[f"kind {number} (2)" for number in range(6)], "other kinds (8)"):
        assert name in picture
    assert picture.count("<use ") == 20 + 7


def test_report_shows_latents_by_kind_and_intervals(
    fitted: IGD, category: Path, tmp_path: Path
) -> None:
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
    evaluation = evaluate(
        fitted, [sample for sample in read_dataset(category).test_samples() if sample.kind == kind]
    )
    assert evaluation.metrics["image_auroc"] is None
    assert "all 10 test images are" in evaluation.metrics["undefined"]
    rates = {"good": "false_alarm_rate", "spot": "miss_rate"}
    assert list(evaluation.metrics["intervals_95"]) == [rates[kind]]
    write_report(tmp_path / "report.html", fitted, evaluation, "one kind")
    assert "all 10 test images are" in (tmp_path / "report.html").read_text()
