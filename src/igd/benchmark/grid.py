"""Many runs: in parallel processes, kept as they finish; what is finished is not done again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from igd.benchmark.outlook import Outlook, seconds_left
from igd.benchmark.runs import Run
from igd.benchmark.store import Record, Store, now
from igd.benchmark.worker import DOING, STOP, work
from igd.errors import Interrupted, UserError
from igd.timing import cores

LISTENING = 0.25  # seconds until a wish to stop is heard


def threads_each(jobs: int) -> int:
    """How many threads each of so many processes gets."""
    if jobs < 1:
        raise UserError(f"jobs is {jobs}; at least one process must do the work")
    return max(1, cores() // jobs)


def run_grid(
    runs: Sequence[Run],
    path: Path,
    store: Store,
    *,
    jobs: int = 1,
    feature_cache: Path | None = None,
    command: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    ended: Callable[[Record], None] = lambda _: None,
    watch: Callable[[Outlook], None] = lambda _: None,
) -> list[Record]:
    """Carry out the runs that have no result yet; returns how each of them ended, failures among them.

    A failure does not stop the others, and is tried again at the next call. When `stop` says so, the runs at work keep what
    they have learnt and this ends with `Interrupted`; the same call goes on from there, and so it does after a crash.
    With a `feature_cache`, a folder, runs share what frozen backbones see in their images, and no image is looked at twice.
    `command` is what someone types to do the same, for the record; `ended` hears of each run at its end, `watch` some times a
    second how the whole is going.
    """
    start = partial(_Worker, path, threads_each(jobs), feature_cache)
    with store.alone():
        if command:
            store.add_command(command)
        return _Grid(runs, start, store, jobs, ended, watch).carry_out(stop)


class _Worker:
    """A process and the run it is working on."""

    def __init__(self, path: Path, threads: int, feature_cache: Path | None) -> None:
        spawn = get_context("spawn")  # a forked PyTorch with threads may hang
        self.connection, theirs = spawn.Pipe()
        self.process = spawn.Process(target=work, args=(path, threads, feature_cache, theirs), daemon=True)
        with _deaf_to_signals():
            self.process.start()
        theirs.close()
        self.run: Run | None = None

    def begin(self, run: Run, checkpoint: Path) -> None:
        self.run, self.started, self.doing = run, time.monotonic(), "beginning"
        self.connection.send((run.to_json(), checkpoint))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def hear(self) -> tuple[str, dict[str, Any]]:
        """What it is doing, or how its run ended; a process that ended instead has failed."""
        try:
            kind, said = self.connection.recv()
            return kind, said
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            hint = "; was the memory full? Try fewer --jobs" if code == -signal.SIGKILL else ""
            return "failed", {"error": f"its process ended without a result (exit code {code}){hint}"}


class _Grid:
    def __init__(
        self,
        runs: Sequence[Run],
        start: Callable[[], _Worker],
        store: Store,
        jobs: int,
        ended: Callable[[Record], None],
        watch: Callable[[Outlook], None],
    ) -> None:
        self.start, self.store, self.jobs = start, store, jobs
        self.ended, self.watch = ended, watch
        finished = store.finished()
        self.total, self.done_before = len(runs), sum(run.key in finished for run in runs)
        self.waiting = [run for run in runs if run.key not in finished]
        self.took = [(each.run, sum((each.result or {})["seconds"].values())) for each in finished.values()]
        self.idle: list[_Worker] = []
        self.at_work: list[_Worker] = []
        self.records: list[Record] = []
        self.told = 0  # records that `ended` has heard of

    def carry_out(self, stop: Callable[[], bool]) -> list[Record]:
        stopping = False
        try:
            while self.at_work or (self.waiting and not stopping):
                while self.waiting and len(self.at_work) < self.jobs and not stopping:
                    self._begin(self.waiting.pop(0))
                self._tell()  # when nobody waits for work
                self.watch(self._outlook())
                if not stopping and stop():
                    stopping = True
                    for worker in self.at_work:
                        worker.connection.send(STOP)
                ready = wait([worker.connection for worker in self.at_work], LISTENING)
                for worker in [each for each in self.at_work if each.connection in ready]:
                    self._hear(worker)
            self._tell()
        finally:
            for worker in (*self.at_work, *self.idle):  # at work only after an error or a second Ctrl-C
                worker.process.kill()
                worker.process.join()
        if stopping:
            raise Interrupted("stopped; the same command goes on")
        return self.records

    def _begin(self, run: Run) -> None:
        worker = self.idle.pop() if self.idle else self.start()
        worker.begin(run, self.store.checkpoint(run))
        self.at_work.append(worker)

    def _hear(self, worker: _Worker) -> None:
        kind, said = worker.hear()
        if kind == DOING:
            worker.doing = said[DOING]
            return
        self.at_work.remove(worker)
        if worker.process.is_alive():
            self.idle.append(worker)
        run = worker.run
        if kind == "stopped" or run is None:
            return
        result, error = (said, None) if kind == "done" else (None, said["error"])
        self.store.add(run, result, error)
        if result is not None:  # and safe: the checkpoint has served
            self.store.checkpoint(run).unlink(missing_ok=True)
            self.took.append((run, worker.seconds))
        self.records.append(Record(run, result, error, now()))

    def _tell(self) -> None:
        for record in self.records[self.told :]:
            self.ended(record)
        self.told = len(self.records)

    def _outlook(self) -> Outlook:
        at_work = [(worker.run, worker.seconds, worker.doing) for worker in self.at_work if worker.run]
        return Outlook(
            total=self.total,
            done=self.done_before + len(self.records),
            failed=sum(record.error is not None for record in self.records),
            at_work=[f"{run.described}: {doing}" for run, _, doing in at_work],
            seconds_left=seconds_left(self.waiting, [(run, spent) for run, spent, _ in at_work], self.took, self.jobs),
        )


@contextmanager
def _deaf_to_signals() -> Iterator[None]:
    """A process started here ignores what all processes of a program get, Ctrl-C of a terminal or the end of a time limit.

    We hear it, and tell it to stop in good order.
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
