"""Bars for people, lines for logs; counted in images."""

import argparse
import sys

import pytest

from igd import progress
from igd.cli.common import progress_of
from igd.progress import LineProgress, LogProgress, Progress, TerminalProgress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_every_few_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in LogProgress().track(range(100), 100, "scoring"):
        clock[0] += 0.5
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "igd: scoring: 10 of 100, about 45 s left"
    assert lines[-1] == "igd: scoring: 100 of 100 in 50 s"
    assert len(lines) == 10


def test_what_is_quick_is_not_worth_a_line(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in LogProgress().track(range(100), 100, "scoring"):
        clock[0] += 0.01
    assert capsys.readouterr().err == ""


def test_batches_count_as_their_images() -> None:
    class Counting(Progress):
        done = 0

        def advance(self, count: int = 1, **figures: float) -> None:
            self.done += count

    counting = Counting()
    batches = [[1, 2, 3], [4, 5, 6], [7]]
    assert list(counting.track(batches, 7, "calibrating", len)) == batches
    assert counting.done == 7


@pytest.mark.parametrize(
    ("terminal", "quiet", "kind"),
    [(True, False, TerminalProgress), (False, False, LogProgress), (True, True, LineProgress)],
)
def test_bars_are_for_terminals(
    terminal: bool, quiet: bool, kind: type[Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert type(progress_of(argparse.Namespace(quiet=quiet))) is kind
