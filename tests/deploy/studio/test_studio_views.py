"""Single views of the studio in a real browser: what they remember, say and look like."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from browser import IN_BROWSER
from conftest import stripes, write_images
from selenium import webdriver
from selenium.webdriver.support.ui import Select
from studio_browser import StudioPage

from igd.deploy.studio import studio_app

pytestmark = IN_BROWSER
Serving = Callable[..., AbstractContextManager[str]]
SIDES = ("x", "y", "width", "height")
# What is nobody's language: names, sizes and the times that the file of texts writes.
NAMES = re.compile(
    r"studio|igd|parts?\d?|part\d_\d\.png|bad\.png|.*\d{4}, \d\d:\d\d.*|.* MB.*|fast: .*"
)
VIEWS = {
    "#/inspect": "#files",
    "#/history?model=parts": ".entry",
    "#/verdicts/1": ".card.single",
    "#/models": ".model",
    "#/models/parts": ".realised",
    "#/train/1": ".tile",
    "#/jobs": "main .panel",
    "#/compare": "#first-model",
}


@pytest.fixture
def filled(page: StudioPage, tmp_path: Path, bad: bytes) -> Callable[[str], None]:
    """One image inspected, and six for a training, of three parts."""

    def fill(url: str) -> None:
        (tmp_path / "bad.png").write_bytes(bad)
        page.go(url, "#/inspect", "#files")
        page.choose("#files", [tmp_path / "bad.png"])
        page.until(lambda: page.all(".card.anomalous"))
        good = write_images(tmp_path / "good", stripes(6, 32, seed=1))
        for number, path in enumerate(sorted(good.iterdir())):
            path.rename(good / f"part{number // 2}_{number % 2}.png")
        page.go(url, "#/train", "#train-files")
        page.choose("#train-files", sorted(good.iterdir()))
        page.until(lambda: "6 images to learn from" in page.one("main").text)

    return fill


def chosen(page: StudioPage) -> list[str]:
    fields = ["#model-name", "#train-rate", "#groups", *(f"#roi-{side}" for side in SIDES)]
    return [page.one("#preview-name").text, *(page.one(f).get_property("value") for f in fields)]


def test_what_was_chosen_for_a_training_survives_a_reload(
    page: StudioPage, serving_studio: Serving, filled: Callable[[str], None]
) -> None:
    with serving_studio() as url:
        filled(url)
        page.one("#model-name").clear()
        page.one("#model-name").send_keys("nuts")
        Select(page.one("#groups")).select_by_index(1)
        assert "3 parts: part0, part1, part2" in page.one("main").text
        Select(page.one("#train-rate")).select_by_visible_text("30 %")
        page.one("#roi summary").click()
        for side, value in zip(SIDES, "4567", strict=True):
            page.one(f"#roi-{side}").send_keys(value)
        page.all(".tile")[3].click()
        before = chosen(page)
        assert before == ["5 images to learn from, 1 left out.", "nuts", "0.3", "^[^_]+", *"4567"]
        page.browser.refresh()
        page.until(lambda: page.all(".tile"))
        assert chosen(page) == before
        assert page.one(".roi-box").is_displayed()


def test_a_verdict_of_a_person_counts_at_once(
    page: StudioPage, serving_studio: Serving, filled: Callable[[str], None]
) -> None:
    with serving_studio() as url:
        filled(url)
        page.go(url, "#/history?model=parts", ".entry")
        assert "no defect marked yet" in page.one(".realised").text
        page.one(".entry [data-truth=defect]").click()
        page.until(lambda: "0 of 1 (0 %; 95 %: 0 % to 98 %)" in page.one(".realised").text)
        page.one(".entry [data-truth=good]").click()  # a false alarm, then
        page.until(lambda: "no defect marked yet" in page.one(".realised").text)
        page.one(".realised a").click()
        page.until(lambda: page.all("#recalibrate-name"))
        heading = "document.getElementById('recalibrate-name')"
        assert page.run(f"return {heading}.getBoundingClientRect().y < innerHeight")


def test_the_keyboard_stays_with_a_filter_and_follows_a_link(
    page: StudioPage, serving_studio: Serving, filled: Callable[[str], None]
) -> None:
    def press(key: str) -> None:
        webdriver.ActionChains(page.browser).send_keys(key).perform()

    with serving_studio() as url:
        filled(url)
        page.go(url, "#/history", ".entry")
        page.run("document.getElementById('filter-alarms').focus()")
        press(" ")
        page.until(lambda: "alarms=1" in page.browser.current_url and page.all(".entry"))
        page.until(lambda: page.run("return document.activeElement.id") == "filter-alarms")
        page.run("document.querySelector('.entry-words a').focus()")
        press("\ue007")  # Enter
        page.until(lambda: page.all(".card.single"))
        page.until(lambda: page.run("return document.activeElement.id") == "main")


def test_every_word_of_the_page_is_in_the_file_of_texts(
    page: StudioPage,
    serving_studio: Serving,
    filled: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With all texts of the file in another language, nothing is left in English but names."""
    read = studio_app.read_page
    script = (Path(__file__).parent / "translated.js").read_bytes()

    def translated(package: str, names: tuple[str, ...]) -> dict[str, bytes]:
        files = read(package, names)
        return {n: c + script if n == "studio_texts.js" else c for n, c in files.items()}

    with serving_studio() as url:
        filled(url)
    monkeypatch.setattr(studio_app, "read_page", translated)
    with serving_studio() as url:
        for path, shown in VIEWS.items():
            page.go(url, path, shown)
            told = page.run("return fetch('v1/studio/models/parts').then(each => each.text())")
            english = page.run("return window.untranslated()")
            assert [e for e in english if not NAMES.fullmatch(e) and e not in told] == [], path


def test_contrast_as_it_is_drawn(
    page: StudioPage, serving_studio: Serving, filled: Callable[[str], None]
) -> None:
    """WCAG 2.1 AA, of every text on what lies behind it."""
    script = (Path(__file__).parent / "contrast.js").read_text()
    with serving_studio() as url:
        filled(url)
        for scheme in ("light", "dark"):
            scheming = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheming)
            for path, shown in VIEWS.items():
                page.go(url, path, shown)
                measured = page.run(script)
                assert len(measured) > 5, path
                assert [each for each in measured if each["ratio"] < each["least"]] == [], path
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_api_of_a_studio_has_a_page(page: StudioPage, serving_studio: Serving) -> None:
    with serving_studio() as url:
        page.go(url, "#/models", ".model")
        page.one("footer a").click()
        page.until(lambda: "POST /v1/models/{name}/inspect" in page.one("body").text)
        page.until(lambda: "PATCH /v1/verdicts/{number}" in page.one("body").text)
        assert page.faults() == []


def test_a_folder_of_images_is_chosen_whole(
    page: StudioPage, serving_studio: Serving, tmp_path: Path
) -> None:
    folder = write_images(tmp_path / "good" / "monday", stripes(3, 32, seed=1)).parent
    write_images(tmp_path / "good" / "tuesday", stripes(2, 32, seed=2))
    (folder / "notes.txt").write_text("not for the model")
    with serving_studio() as url:
        page.go(url, "#/train", "#train-files")
        page.choose("input[webkitdirectory]", [folder])
        page.until(lambda: "5 images to learn from" in page.one("main").text)
        assert page.one("#preview-name").text == "5 images to learn from."
