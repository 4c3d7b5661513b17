"""Galleries by kind of defect: mistakes first, a bounded number, and the ground truth."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from browser import IN_BROWSER, Page
from PIL import Image

from igd import IGD
from igd.data.geometry import Geometry
from igd.data.reading import read_dataset
from igd.data.sample import Sample
from igd.evaluation.evaluate import Evaluation, ScoredSample, evaluate
from igd.evaluation.galleries import LEAST, MOST, SHOWN, galleries, grouped, is_elsewhere
from igd.evaluation.report import write_report

BLANK = np.zeros((8, 8), dtype=np.uint8)


def scored(kind: str, score: float, label: int = 1, name: str = "") -> ScoredSample:
    sample = Sample(name or f"{kind}/{score}.png", BLANK, kind, label)
    return ScoredSample(sample, score, 1 - score, score > 0.5, {})


def test_mistakes_come_first_the_worst_of_them_at_the_top() -> None:
    predicted = [scored("crack", score) for score in (0.9, 0.4, 0.7, 0.2, 0.6)]
    predicted += [scored("good", score, 0) for score in (0.1, 0.55, 0.3, 0.8)]
    cracks, normal = grouped(predicted)
    assert [each.score for each in cracks.chosen(6)] == [0.2, 0.4, 0.6, 0.7, 0.9]
    assert [each.score for each in normal.chosen(6)] == [0.8, 0.55, 0.3, 0.1]
    assert cracks.told(cracks.chosen(6)) == "5 of 5 images shown: 2 of 2 missed, 3 of 3 found."


def test_what_never_happened_is_none() -> None:
    (group,) = grouped([scored("crack", 0.9)])
    assert group.told(group.chosen(6)) == "1 of 1 image shown: none missed, 1 of 1 found."


def test_kinds_that_are_missed_most_come_first_and_normal_images_last() -> None:
    predicted = [scored("good", 0.9, 0), scored("bent", 0.9), scored("cut", 0.1)]
    assert [group.kind for group in grouped(predicted)] == ["cut", "bent", "normal"]


def test_many_mistakes_leave_room_for_some_that_were_found_and_both_are_counted() -> None:
    predicted = [scored("crack", number / 100) for number in range(40, 60)]
    (group,) = grouped(predicted)
    shown = group.chosen(6)
    assert [each.score for each in shown] == [0.4, 0.41, 0.42, 0.43, 0.51, 0.59]
    assert group.told(shown) == "6 of 20 images shown: 4 of 11 missed, 2 of 9 found."


class Stub:
    """A detector of which galleries ask maps and limits alone."""

    background_level_, pixel_threshold_ = 0.3, 0.6
    geometry_ = Geometry(64)

    def predict(self, image: np.ndarray):
        from igd.inference.predictor import Prediction

        zeros = np.zeros(image.shape[:2], dtype=np.float32)
        return Prediction("", 0.5, 0.5, False, zeros, {})


def test_the_number_of_pictures_is_bounded_whatever_the_number_of_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("igd.evaluation.galleries.THUMBNAIL", 8)
    for kinds in (1, 9, 200):
        predicted = [scored("good", 0.1, 0) for _ in range(20)]
        predicted += [scored(f"kind {kind}", 0.9) for kind in range(kinds) for _ in range(8)]
        shown = galleries(Stub(), predicted)
        counts = [len(gallery["cards"]) for gallery in shown["galleries"]]
        assert sum(counts) <= MOST
        assert LEAST <= min(counts) <= max(counts) <= SHOWN
        assert len(counts) + len(shown["not_shown"]) == kinds + 1
        assert not shown["galleries"][-1]["is_defect"]
        numbers = [card["number"] for gallery in shown["galleries"] for card in gallery["cards"]]
        assert len(set(numbers)) == len(numbers)


def test_the_ground_truth_is_drawn_at_its_mask_and_not_on_the_image() -> None:
    mask = np.zeros((64, 64), dtype=bool)
    mask[20:40, 30:50] = True
    grey = np.full((64, 64), 128, dtype=np.uint8)
    predicted = [
        ScoredSample(Sample("x", grey, "spot", 1, mask), 0.9, 0.1, True, {}),
        ScoredSample(Sample("y", grey, "good", 0), 0.1, 0.9, False, {}),
    ]
    shown = galleries(Stub(), predicted)
    assert shown["has_truth"]
    (spot,), (good,) = (gallery["cards"] for gallery in shown["galleries"])
    assert not good["has_truth"]
    for label, uri in spot["panels"]:
        picture = np.asarray(
            Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))).convert("RGB")
        ).astype(int)
        factor = len(picture) // 64
        blue = picture[:, :, 2] - picture[:, :, 0] > 60
        if label == "image":
            assert not blue.any()
            continue
        rows, columns = np.nonzero(blue)
        near = factor
        assert abs(rows.min() - 20 * factor) <= near
        assert abs(rows.max() - 40 * factor) <= near
        assert abs(columns.min() - 30 * factor) <= near
        assert abs(columns.max() - 50 * factor) <= near
        assert not blue[22 * factor : 38 * factor, 32 * factor : 48 * factor].any()


def test_an_outline_beside_the_defect_is_told() -> None:
    outlined, truth = np.zeros((2, 9, 9), dtype=bool)
    truth[1:4, 1:4] = True
    assert not is_elsewhere(outlined, truth)  # nothing is outlined
    outlined[5:8, 5:8] = True
    assert is_elsewhere(outlined, truth)
    outlined[3, 3] = True
    assert not is_elsewhere(outlined, truth)


@pytest.fixture(scope="module")
def evaluation(fitted: IGD, category: Path) -> Evaluation:
    return evaluate(fitted, read_dataset(category).test_samples())


def test_the_report_has_a_section_a_kind_with_verdicts_and_names_escaped(
    fitted: IGD, evaluation: Evaluation, tmp_path: Path
) -> None:
    odd = [
        ScoredSample(
            Sample(f'a/<b onclick="x">{number}', each.sample.image, "<i>&", each.sample.label),
            each.score,
            each.p_value,
            each.is_anomalous,
            each.terms,
        )
        if each.sample.label
        else each
        for number, each in enumerate(evaluation.predicted)
    ]
    path = tmp_path / "report.html"
    write_report(path, fitted, Evaluation(evaluation.metrics, odd), "stripes")
    page = path.read_text()
    assert "Defect: &lt;i&gt;&amp;" in page
    assert "<i>&" not in page
    assert "<b onclick" not in page
    assert 'onclick="x"' not in page
    assert "ground-truth mask" not in page  # there is none
    assert page.count("<h3>") == 2
    assert page.count(" popover ") == page.count("popovertarget=") == 12
    assert path.stat().st_size < 1_500_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory):
    opened = Page(tmp_path_factory.mktemp("downloads"))
    yield opened
    opened.browser.quit()


class TestInBrowser:
    pytestmark = IN_BROWSER

    def test_pictures_fit_a_phone_and_are_enlarged_by_keyboard(
        self, page: Page, fitted: IGD, evaluation: Evaluation, tmp_path: Path
    ) -> None:
        path = tmp_path / "report.html"
        write_report(path, fitted, evaluation, "stripes")
        page.open(path.as_uri(), width=390)
        assert page.run("return document.documentElement.scrollWidth") <= 390
        edges = page.run(
            "return [...document.querySelectorAll('.panel img')].map(image => "
            "[image.getBoundingClientRect().right, image.getBoundingClientRect().width, "
            "image.naturalWidth])"
        )
        assert len(edges) == 3 * 12
        assert all(right <= 390 and 80 < width < 200 and drawn for right, width, drawn in edges)

        first = page.one(".panels")
        first.send_keys("\n")
        page.until(lambda: page.run("return document.querySelectorAll(':popover-open').length"))
        wide = page.run("return document.querySelector('.panel img').getBoundingClientRect().width")
        assert wide > 300
        assert page.run("return document.documentElement.scrollWidth") <= 390
        first.send_keys("\ue00c")  # Escape
        page.until(lambda: not page.run("return document.querySelectorAll(':popover-open').length"))
        assert page.run("return document.activeElement.className") == "panels"
        logged = page.browser.get_log("browser")
        assert [entry for entry in logged if entry["level"] == "SEVERE"] == []
