"""The studio in a real browser, and as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from browser import Page
from selenium.common.exceptions import StaleElementReferenceException

PATIENCE = 120  # seconds that a job may take on a busy machine


class StudioPage(Page):
    """The studio's page, in the words of who uses it."""

    def until(self, true: Callable[[], object], seconds: float = PATIENCE) -> None:
        def settled() -> object:
            try:
                return true()
            except StaleElementReferenceException:  # drawn anew between finding and reading it
                return False

        super().until(settled, seconds)

    def go(self, url: str, path: str, shown: str, width: int = 1280) -> None:
        self.open("about:blank", width)
        self.open(url + path, width)
        self.until(lambda: self.all(shown))

    def choose(self, field: str, files: list[Path]) -> None:
        self.one(field).send_keys("\n".join(map(str, files)))

    def press(self, text: str, within: str = "main") -> None:
        (button,) = [each for each in self.all(f"{within} button, {within} a") if each.text == text]
        button.click()

    def faults(self) -> list[str]:
        """What went wrong in the page; a studio that was killed on purpose is no fault of it."""
        expected = ("status of 4", "ERR_CONNECTION", "Is it still running?")
        return [
            entry["message"]
            for entry in self.browser.get_log("browser")
            if entry["level"] == "SEVERE" and not any(each in entry["message"] for each in expected)
        ]

    def overflow(self) -> int:
        return self.run("return document.documentElement.scrollWidth - innerWidth")


class Process:
    """`igd studio` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "igd.cli", "studio", str(folder), "--port", "0", "--json"]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"] + "/"

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)
