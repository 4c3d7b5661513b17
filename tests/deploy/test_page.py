"""The page, in a real browser."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import IN_BROWSER, Page
from conftest import stripes, write_images
from PIL import Image
from selenium import webdriver

from igd import IGD

pytestmark = IN_BROWSER


class ServedPage(Page):
    """The server's page, in the words of who uses it."""

    def choose(self, *files: Path) -> None:
        self.until(lambda: self.one("#rate").is_enabled())
        before = len(self.all(".card"))
        self.one("#files").send_keys("\n".join(map(str, files)))
        self.until(lambda: len(self.all(".card:not(.waiting)")) == before + len(files))

    def move_rate(self, key: str) -> None:
        self.one("#rate").send_keys(key)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    opened = ServedPage(tmp_path_factory.mktemp("downloads"))
    yield opened
    opened.browser.quit()


@pytest.fixture
def files(tmp_path: Path, good: bytes, bad: bytes) -> dict[str, Path]:
    contents = {"good.png": good, "bad.png": bad, "broken.png": b"no picture"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in contents}


def test_verdicts_of_chosen_files(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path]
) -> None:
    page.open(served())
    page.choose(files["good.png"], files["bad.png"])
    assert page.texts(".card .name") == ["bad.png", "good.png"]
    assert page.texts(".card .word") == ["Anomalous", "Normal"]
    assert "None of the 40 normal images" in page.one(".card .meaning").text
    assert page.one("#summary").get_attribute("aria-live") == "polite"
    page.until(lambda: "1 of 2 images anomalous at 5 %." in page.one("#summary").text)
    assert len(page.all(".card:first-child .boxes .over")) >= 1
    page.until(lambda: page.run("return document.querySelector('.anomaly-map').naturalWidth") == 32)
    assert [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_dropped_image_is_judged(
    page: ServedPage, served: Callable[..., str], bad: bytes
) -> None:
    page.open(served())
    page.until(lambda: page.one("#rate").is_enabled())
    page.run(
        "const transfer = new DataTransfer();"
        "transfer.items.add(new File([new Uint8Array(arguments[0])], 'dropped.png', {type: "
        "'image/png'}));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: "
        "true, cancelable: true}));",
        list(bad),
    )
    page.until(lambda: page.texts(".card .word") == ["Anomalous"])
    assert page.texts(".card .name") == ["dropped.png"]


def test_a_file_that_browsers_can_not_show_is_shown_by_the_server(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path]
) -> None:
    with Image.open(files["bad.png"]) as image:
        image.save(files["bad.png"].with_suffix(".tif"))
    page.open(served())
    page.choose(files["bad.png"].with_suffix(".tif"))
    assert page.texts(".card .word") == ["Anomalous"]
    page.until(lambda: page.run("return document.querySelector('.photo').naturalWidth") == 32)
    assert not page.one(".card .opacity").is_displayed()


def test_one_rate_moves_all_verdicts_without_asking_again(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path], fitted: IGD
) -> None:
    page.open(served())
    images = stripes(50, seed=31)
    between = next(n for n, each in enumerate(fitted.predict(images)) if 0.12 < each.p_value < 0.4)
    odd = write_images(files["good.png"].parent, images[between : between + 1]) / "000.png"
    p_value = fitted.predict(odd).p_value
    page.choose(odd, files["bad.png"])
    asked = page.run("return performance.getEntriesByType('resource').length")
    seen = {}
    for key in ["\ue012"] * 12 + [
        "\ue014"
    ] * 12:  # arrows to the left, to the lowest rate, then to the right
        page.move_rate(key)
        seen[page.one("#rate-value").text] = page.texts(".card .word")[1]
    assert seen["2.4 %"] == "Normal"  # the lowest rate that 40 images can promise
    assert seen["50 %"] == "Anomalous"
    for rate, verdict in seen.items():
        assert verdict == (
            "Anomalous" if p_value <= float(rate.removesuffix(" %")) / 100 + 1e-3 else "Normal"
        )
    assert len(seen) > 5
    assert page.texts("#rows td:last-child") == ["Anomalous", "Anomalous"]
    assert page.run("return performance.getEntriesByType('resource').length") == asked


def test_a_broken_file_gets_a_readable_message(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path]
) -> None:
    page.open(served(max_bytes=2000))
    large = files["good.png"].with_name("large.png")
    large.write_bytes(bytes(3000))
    page.choose(files["broken.png"], large)
    assert page.texts(".card .word") == ["No verdict", "No verdict"]
    assert set(page.texts(".card .meaning")) == {
        "Not an image, whatever its name says; send PNG, JPEG, TIFF, BMP or WebP.",
        "It has 0.0 MB, and this server takes 0.0 MB; make it smaller.",
    }
    assert page.one(".card .again").is_displayed()


def test_the_history_is_saved_as_csv(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path], tmp_path: Path
) -> None:
    page.open(served())
    tricky = files["bad.png"].rename(tmp_path / '=cmd,"x".png')
    page.choose(files["good.png"])
    page.choose(tricky)
    assert page.texts("#rows tr td:nth-child(2)") == ['=cmd,"x".png', "good.png"]
    saved = page.run(
        "let saved; const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { saved = blob; return make.call(URL, blob); };"
        "document.getElementById('export').click(); URL.createObjectURL = make; return "
        "saved.text();"
    )
    lines = str(saved).split("\r\n")
    assert lines[0] == "time,image,model,score,p_value,max_false_alarms,is_anomalous,areas"
    assert '"\'=cmd,""x"".png"' in lines[1]
    assert ",true," in lines[1]
    assert ",false," in lines[2]


def test_a_token_is_asked_for(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path]
) -> None:
    page.open(served(token="secret" * 3))
    for given in ("wrong", "secret" * 3):
        page.until(lambda: page.one("#token-dialog").is_displayed())
        page.one("#token").clear()
        page.one("#token").send_keys(given + "\n")
        if given == "wrong":
            page.until(lambda: page.one("#token-fault").text == "This is not the right token.")
    page.choose(files["bad.png"])
    assert page.texts(".card .word") == ["Anomalous"]


def test_one_of_several_models_is_chosen(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path]
) -> None:
    page.open(served("nuts", "bolts"))
    page.until(lambda: page.one("#model").is_displayed())
    page.one("#model").send_keys("bolts")
    page.choose(files["good.png"])
    assert page.texts("#rows td:nth-child(3)") == ["bolts"]


def test_a_picture_from_the_camera(page: ServedPage, served: Callable[..., str]) -> None:
    page.open(served())
    page.until(lambda: page.one("#camera").is_displayed())
    page.one("#camera").click()
    page.until(lambda: page.one("#shoot").is_enabled())
    page.one("#shoot").click()
    page.until(lambda: page.all(".card.normal, .card.anomalous"))
    assert page.texts(".card .name")[0].startswith("camera ")
    page.one("#camera-close").click()
    # The dialog tells of its closing a moment later.
    page.until(lambda: page.run("return document.getElementById('video').srcObject") is None)


def test_everything_is_reached_by_keyboard_and_fits_a_phone(
    page: ServedPage, served: Callable[..., str], files: dict[str, Path]
) -> None:
    page.open(served(), width=390)
    page.choose(files["bad.png"], files["broken.png"])
    page.run("document.activeElement.blur()")
    reached = []
    for _ in range(12):
        webdriver.ActionChains(page.browser).send_keys("\ue004").perform()
        focused = page.browser.switch_to.active_element
        reached.append(
            focused.get_attribute("id") or focused.get_attribute("class") or focused.tag_name
        )
        if focused.tag_name != "body":
            framed = page.run(
                "const e = arguments[0].matches('#files') ? arguments[0].parentElement : "
                "arguments[0];"
                "return getComputedStyle(e).outlineStyle",
                focused,
            )
            assert framed == "solid", reached[-1]
    assert {"files", "camera", "rate", "again", "export"} <= set(reached), json.dumps(reached)
    assert page.run("return document.documentElement.scrollWidth") <= 390
