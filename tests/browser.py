"""A real browser, for the tests of pages."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium import webdriver

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
IN_BROWSER = [
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="needs chromium and chromedriver: make browser",
    ),
    pytest.mark.xdist_group("browser"),
]
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    # Whatever came from elsewhere would be missing.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Page:
    """A page in the browser."""

    def __init__(self, downloads: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for flag in FLAGS:
            options.add_argument(flag)
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))

    def all(self, selector: str) -> list:
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str):
        return self.browser.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def run(self, script: str, *arguments: object) -> object:
        return self.browser.execute_script(script, *arguments)

    def until(self, true: Callable[[], object], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, (
                self.one("body").text,
                self.browser.get_log("browser"),
            )
            time.sleep(0.02)

    def open(self, url: str, width: int = 1280) -> None:
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        self.browser.get(url)
