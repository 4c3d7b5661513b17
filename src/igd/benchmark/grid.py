"""Many runs: in parallel, each in a process of its own, kept as they finish; what is finished is not done again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from igd.benchmark.outlook import Outlook, seconds_left
from igd.benchmark.runs import Run
from igd.benchmark.store import Record, Store, now
from igd.benchmark.worker import work
from igd.errors import Interrupted, UserError

LISTENING = 0.25  # seconds until a wish to stop is heard


@dataclass
class Attempt:
    """A run that a process is working on."""

    run: Run
    process: SpawnProcess
    connection: Connection
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def threads_each(jobs: int) -> int:
    """How many threads each of so many processes gets."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // jobs)


def run_grid(
    runs: Sequence[Run],
    path: Path,
    store: Store,
    *,
    jobs: int = 1,
    stop: Callable[[], bool] = lambda: False,
    ended: Callable[[Record], None] = lambda _: None,
    watch: Callable[[Outlook], None] = lambda _: None,
) -> list[Record]:
    """Carry out the runs that have no result yet; returns how each of them ended, failures among them.

    A failure does not stop the others, and is tried again at the next call. When `stop` says so, the runs at work keep what
    they have learnt and this ends with `Interrupted`; the same call goes on from there, and so it does after a crash.
    `ended` hears of each run at its end, `watch` some times a second how the whole is going.
    """
    if jobs < 1:
        raise UserError(f"jobs is {jobs}; at least one process must do the work")
    with store.alone():
        return _Grid(runs, path, store, jobs, ended, watch).carry_out(stop)


class _Grid:
    def __init__(
        self,
        runs: Sequence[Run],
        path: Path,
        store: Store,
        jobs: int,
        ended: Callable[[Record], None],
        watch: Callable[[Outlook], None],
    ) -> None:
        self.path, self.store, self.jobs = path, store, jobs
        self.ended, self.watch = ended, watch
        finished = store.finished()
        self.total = len(runs)
        self.waiting = [run for run in runs if run.key not in finished]
        self.took = [(each.run, sum((each.result or {})["seconds"].values())) for each in finished.values()]
        self.at_work: list[Attempt] = []
        self.records: list[Record] = []

    def carry_out(self, stop: Callable[[], bool]) -> list[Record]:
        stopping = False
        try:
            while self.at_work or (self.waiting and not stopping):
                while self.waiting and len(self.at_work) < self.jobs and not stopping:
                    self.at_work.append(self._begin(self.waiting.pop(0)))
                self.watch(self._outlook())
                if not stopping and stop():
                    stopping = True
                    for attempt in self.at_work:
                        attempt.connection.send("stop")
                for attempt in self._heard():
                    self._end(attempt)
        finally:
            for attempt in self.at_work:  # only after an error or a second Ctrl-C
                attempt.process.kill()
        if stopping:
            raise Interrupted("stopped; the same command goes on")
        return self.records

    def _begin(self, run: Run) -> Attempt:
        spawn = get_context("spawn")  # a forked PyTorch with threads may hang
        ours, theirs = spawn.Pipe()
        given = (run.to_json(), self.path, self.store.checkpoint(run), threads_each(self.jobs), theirs)
        process = spawn.Process(target=work, args=given, daemon=True)
        with _deaf_to_interrupts():
            process.start()
        theirs.close()
        return Attempt(run, process, ours)

    def _heard(self) -> list[Attempt]:
        ready = wait([attempt.connection for attempt in self.at_work], LISTENING)
        return [attempt for attempt in self.at_work if attempt.connection in ready]

    def _end(self, attempt: Attempt) -> None:
        kind, said = _last_words(attempt)
        self.at_work.remove(attempt)
        attempt.process.join()
        if kind == "stopped":
            return
        result, error = (said, None) if kind == "done" else (None, said["error"])
        self.store.add(attempt.run, result, error)
        if result is not None:  # and safe: the checkpoint has served
            self.store.checkpoint(attempt.run).unlink(missing_ok=True)
            self.took.append((attempt.run, attempt.seconds))
        self.records.append(Record(attempt.run, result, error, now()))
        self.ended(self.records[-1])

    def _outlook(self) -> Outlook:
        at_work = [(attempt.run, attempt.seconds) for attempt in self.at_work]
        return Outlook(
            total=self.total,
            done=self.total - len(self.waiting) - len(at_work),
            failed=sum(record.error is not None for record in self.records),
            at_work=[run.described for run, _ in at_work],
            seconds_left=seconds_left(self.waiting, at_work, self.took, self.jobs),
        )


def _last_words(attempt: Attempt) -> tuple[str, dict[str, Any]]:
    try:
        kind, said = attempt.connection.recv()
        return kind, said
    except (EOFError, ConnectionResetError):
        attempt.process.join()
        code = attempt.process.exitcode
        hint = "; was the memory full? Try fewer --jobs" if code == -signal.SIGKILL else ""
        return "failed", {"error": f"its process ended without a result (exit code {code}){hint}"}


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A process started here ignores the terminal's Ctrl-C: we hear it, and tell it to stop in good order."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
