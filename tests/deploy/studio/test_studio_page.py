"""The studio in a real browser: from dropped images to verdicts, by someone without a terminal."""

import csv
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from browser import IN_BROWSER
from conftest import spotted, stripes, write_images
from PIL import Image
from selenium import webdriver
from studio_browser import Process, StudioPage

from igd.deploy.server.roles import Role, RoleToken

pytestmark = IN_BROWSER
SIDE = 80  # pixels: the smallest images that are learnt from without training
XSS = '<img src=x onerror="document.title=1">'
TOKENS = {role: f"{role.label}-token-of-some-length" for role in Role}


def test_from_dropped_images_to_a_running_inspection(
    page: StudioPage, tmp_path: Path, downloads: Path
) -> None:
    good = write_images(tmp_path / "good", stripes(20, SIDE, seed=1))
    odd = np.rot90(stripes(1, SIDE, seed=2)[0]).copy()
    Image.fromarray(odd).save(good / "odd.png")
    (good / "text.png").write_text("no picture")
    new = write_images(tmp_path / "new", stripes(8, SIDE, seed=3))
    bad = write_images(tmp_path / "bad", spotted(stripes(2, SIDE, seed=4), (24, 30), 20))
    relit = write_images(tmp_path / "relit", (stripes(28, SIDE, seed=5) * 0.9).astype(np.uint8))

    studio = Process(tmp_path / "workspace")
    try:
        # Train, and be told what was left out.
        page.go(studio.url, "", "main .button.main")
        page.press("Train the first model")
        page.until(lambda: page.all("#train-files"))
        page.choose("#train-files", sorted(good.iterdir()))
        page.until(lambda: "21 images to learn from, 1 left out." in page.one("main").text)
        assert "text.png: not an image" in page.one(".left-out").text
        page.until(lambda: "#/train/1" in page.browser.current_url)
        page.one("#model-name").clear()
        page.one("#model-name").send_keys("stripes")
        page.one("#start-training").click()
        page.until(lambda: page.all("#job-progress"))

        # The studio is killed while it trains; another takes the job up by itself.
        page.until(lambda: "Extracting" in page.one("#job-words").text)
        studio.stop(signal.SIGKILL)
        studio = Process(tmp_path / "workspace")
        page.go(studio.url, "#/jobs/1", "#job-words")
        page.until(lambda: page.all(".state.done"))
        assert "at most 5 % false alarms, by 21 images" in page.one("#job-words").text

        # Leave the odd image out.
        assert "odd.png" in page.texts(".warning figcaption")
        page.until(lambda: page.run("return document.querySelector('figure img').naturalWidth"))
        page.one("#without-odd").click()
        page.until(lambda: "#/jobs/2" in page.browser.current_url)
        page.until(lambda: page.all(".state.done"))

        # Recalibrate with other images.
        page.go(studio.url, "#/models/stripes", "#calibrate-files")
        page.choose("#calibrate-files", sorted(relit.iterdir())[:7])
        page.until(lambda: "takes about 26 images; there are 7" in page.one("#too-few").text)
        assert "7 images to calibrate with." in page.one("main").text
        page.choose("#calibrate-files", sorted(relit.iterdir())[7:])
        page.until(lambda: not page.one("#too-few").is_displayed())
        page.one("#recalibrate").click()
        page.until(lambda: "#/jobs/3" in page.browser.current_url)
        page.until(lambda: page.all(".state.done"))
        assert "by 21 images" in page.one("#job-words").text  # 7 more centre the parts

        # Inspect ten images, on a phone.
        page.go(studio.url, "#/inspect/stripes", "#files", width=390)
        page.choose("#files", [*sorted(new.iterdir()), *sorted(bad.iterdir())])
        page.until(lambda: len(page.all(".card:not(.waiting)")) == 10)
        assert len(page.all(".card.anomalous")) >= 2
        assert page.overflow() <= 0
        alarm = page.one(".card.anomalous")
        alarm.find_element("css selector", "[data-truth=defect]").click()
        page.until(lambda: page.all(".card.anomalous [data-truth=defect][aria-pressed=true]"))
        page.one(".card:not(.anomalous) [data-truth=good]").click()
        page.until(lambda: len(page.all(".truth [aria-pressed=true]")) == 2)

        # Everything is there after a restart.
        assert studio.stop() == 0
        studio = Process(tmp_path / "workspace")
        page.go(studio.url, "#/history?model=stripes", ".entry")
        assert len(page.all(".entry")) == 10
        assert len(page.all(".truth [aria-pressed=true]")) == 2
        assert "0 of 1" in page.one(".realised").text  # no defect was missed
        page.press("Save as CSV")
        table = downloads / "verdicts.csv"
        page.until(table.exists)
        with table.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 10
        assert sorted(row["person"] for row in rows)[-2:] == ["defect", "good"]
        assert page.faults() == []
    finally:
        assert studio.stop() == 0


def test_a_job_is_stopped_and_goes_on(page: StudioPage, tmp_path: Path) -> None:
    # Enough for several batches: a training listens between two of them.
    good = write_images(tmp_path / "good", stripes(160, SIDE, seed=1))
    studio = Process(tmp_path / "workspace")
    try:
        page.go(studio.url, "#/train", "#train-files")
        page.choose("#train-files", sorted(good.iterdir()))
        page.until(lambda: "160 images to learn from" in page.one("main").text)
        page.one("#start-training").click()
        page.until(lambda: "Extracting" in (page.texts("#job-words") or [""])[0])
        page.press("Stop")
        page.until(lambda: page.all(".state.stopped"))
        assert (tmp_path / "workspace" / "checkpoints" / "1.checkpoint").exists()
        page.press("Go on")
        page.until(lambda: page.all(".state.running"))
        page.press("Stop")
        page.until(lambda: page.all(".state.stopped"))
        page.press("Delete this job")
        page.press("Delete", "#confirm-dialog")
        page.until(lambda: "Nothing was done yet." in page.one("main").text)
        assert not list((tmp_path / "workspace" / "checkpoints").iterdir())
    finally:
        studio.stop()


def test_names_and_notes_are_text(
    page: StudioPage,
    workspace,
    serving_studio: Callable[..., AbstractContextManager[str]],
    bad: bytes,
    tmp_path: Path,
) -> None:
    (workspace.models / "parts.igd").rename(workspace.models / f"{XSS}.igd")
    image = tmp_path / f"{XSS}.png"
    image.write_bytes(bad)
    with serving_studio() as url:
        page.go(url, "#/inspect", "#files")
        page.choose("#files", [image])
        page.until(lambda: page.all(".card.anomalous"))
        page.press("Open")
        page.until(lambda: page.all("#note"))
        page.one("#note").send_keys(XSS)
        page.press("Save")
        page.until(lambda: "Saved." in page.one("main").text)
        for path, shown in (
            ("#/history", ".note-text"),
            ("#/models", ".model"),
            (f"#/models/{XSS.replace('<', '%3C').replace('>', '%3E')}", ".realised"),
            ("#/verdicts/1", "#note"),
            ("#/inspect", "#model"),
        ):
            page.go(url, path, shown)
            page.until(lambda: "igd studio" in page.browser.title)
            assert not page.all('img[src="x"]'), path
        page.go(url, "#/train", "#train-files")
        page.choose("#train-files", [image])
        page.until(lambda: page.all(".tile"))
        draw_region(page)
        assert page.texts(".tile-name")[0].startswith("<img src=x")
        assert not page.all('img[src="x"]')
        assert page.faults() == []


def draw_region(page: StudioPage) -> None:
    """A box from the middle to the lower right quarter of an image of 32 pixels."""
    page.one("#roi summary").click()
    frame = page.one(".roi-frame")
    wide = frame.size["width"] // 4
    actions = webdriver.ActionChains(page.browser)
    actions.move_to_element(frame).click_and_hold().move_by_offset(wide, wide).release().perform()
    drawn = [
        int(page.one(f"#roi-{s}").get_property("value")) for s in ("x", "y", "width", "height")
    ]
    assert np.abs(np.subtract(drawn, [16, 16, 8, 8])).max() <= 1, drawn
    assert page.one(".roi-box").is_displayed()


def test_who_lacks_the_role_is_refused(
    page: StudioPage,
    serving_studio: Callable[..., AbstractContextManager[str]],
    bad: bytes,
    tmp_path,
) -> None:
    (tmp_path / "bad.png").write_bytes(bad)
    tokens = tuple(RoleToken(role, TOKENS[role]) for role in Role)
    with serving_studio(role_tokens=tokens) as url:
        for role, may in ((Role.VIEW, "#/history"), (Role.INSPECT, "#/inspect")):
            page.open("about:blank")
            page.open(url + may)
            page.run("sessionStorage.clear()")
            page.browser.refresh()
            page.until(lambda: page.one("#token-dialog").is_displayed())
            page.one("#token").send_keys(TOKENS[role] + "\n")
            page.until(lambda: page.all("#filter-text, #files"))
            page.go(url, "#/train", "main .panel")  # a reload keeps the token
            assert "role 'train'" in page.one("main").text
            assert not page.all("#train-files")
        page.go(url, "#/inspect", "#files")
        page.choose("#files", [tmp_path / "bad.png"])
        page.until(lambda: page.all(".card.anomalous"))
        page.go(url, "#/models/parts", ".realised")
        assert "Delete this model" not in page.one("main").text
        told = page.run(
            "return fetch('v1/studio/models/parts', {method: 'DELETE', headers: {Authorization: "
            "'Bearer ' + arguments[0]}}).then(answer => answer.status)",
            TOKENS[Role.INSPECT],
        )
        assert told == 403


def test_every_view_fits_a_phone_and_is_reached_by_keyboard(
    page: StudioPage,
    serving_studio: Callable[..., AbstractContextManager[str]],
    tmp_path: Path,
    bad,
) -> None:
    (tmp_path / f"{'a very long name ' * 6}.png").write_bytes(bad)
    with serving_studio() as url:
        page.go(url, "#/inspect", "#files", width=390)
        page.choose("#files", [*tmp_path.glob("*.png")])
        page.until(lambda: page.all(".card.anomalous"))
        views = {
            "#/inspect": "#files",
            "#/history": ".entry",
            "#/verdicts/1": ".card.single",
            "#/models": ".model",
            "#/models/parts": ".realised",
            "#/train": "#train-files",
            "#/jobs": "main .panel",
            "#/compare": "#first-model",
        }
        for path, shown in views.items():
            page.go(url, path, shown, width=390)
            assert page.overflow() <= 0, path
            unnamed = page.run(
                "const all = document.querySelectorAll("
                "'main :is(button, a, input, select, textarea):not([aria-hidden])');"
                "const name = e => e.ariaLabel || e.textContent || e.labels?.[0]?.textContent;"
                "return [...all].filter(e => !name(e)?.trim()).map(e => e.outerHTML)"
            )
            assert unnamed == [], path
            assert len(page.all("h1")) == 1
        page.go(url, "#/inspect", "#files", width=390)
        reached = set()
        for _ in range(14):
            webdriver.ActionChains(page.browser).send_keys("\ue004").perform()
            focused = page.browser.switch_to.active_element
            reached.add(focused.get_attribute("id") or focused.text)
        assert {"Inspect", "Train", "model", "inspect-rate", "files", "camera"} <= reached


def test_a_live_camera(
    page: StudioPage, serving_studio: Callable[..., AbstractContextManager[str]]
) -> None:
    with serving_studio() as url:
        page.go(url, "#/inspect", "#camera")
        page.one("#camera").click()
        page.until(lambda: page.one("#shoot").is_enabled())
        page.one("#live").click()
        page.until(lambda: len(page.all("#live-verdicts li")) >= 3)
        page.one("#camera-close").click()
        page.until(lambda: page.run("return document.getElementById('video').srcObject") is None)
