"""How `igd benchmark run` shows a grid of runs: a bar, and a line for each run."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from igd.progress import LogProgress
from igd.text import visible

if TYPE_CHECKING:
    from igd.benchmark.grid import GridStatus
    from igd.benchmark.run_store import Record


class GridBar:
    """Shows how the grid is going: a bar on a terminal, lines in a log, and one for each run that
    failed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.json, self.quiet, self.output = options.json, options.quiet, sys.stdout
        self.logged, self.told = not sys.stderr.isatty(), time.monotonic()

    def __enter__(self) -> GridBar:
        from tqdm import tqdm

        form = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} runs [{elapsed}{postfix}]"
        self.bar = tqdm(
            desc="benchmark",
            disable=self.quiet or self.logged,
            dynamic_ncols=True,
            bar_format=form,
            mininterval=1,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def watch(self, status: GridStatus) -> None:
        seconds = status.seconds_left
        left = "" if seconds is None else f"about {self.bar.format_interval(seconds)} left; "
        self.bar.total, self.bar.n = status.total, status.done
        self.bar.set_postfix_str(left + visible("; ".join(status.at_work)), refresh=False)
        self.bar.update(0)
        if self.logged and not self.quiet and time.monotonic() - self.told > LogProgress.EVERY:
            self.told = time.monotonic()
            sys.stderr.write(f"igd: benchmark: {status.done} of {status.total} runs; {left}\n")

    def ended(self, record: Record) -> None:
        if record.error:
            self.bar.write(failure_line(record), file=sys.stderr)
        if self.json:
            print(json.dumps(run_line(record)), file=self.output, flush=True)


def failure_line(record: Record) -> str:
    reason = (record.error or "").splitlines()[0]
    return f"igd: failed: {visible(record.run.described)}: {visible(reason)}"


def run_line(record: Record) -> dict[str, Any]:
    return {"run": record.run.to_json(), "result": record.result, "error": record.error}
