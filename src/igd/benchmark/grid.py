"""Many runs: in parallel processes, kept as they finish; what is finished is not done again.

A process carries out runs one after another and reports how each ended.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from statistics import mean
from typing import Any

from igd.benchmark.run import Run, digest
from igd.benchmark.run_store import Record, RunStore, now
from igd.cpu import cores
from igd.errors import Interrupted, UserError
from igd.progress import Progress

STOP = "stop"
DOING = "doing"
SLOW_TO_IMPORT = ["torch", "sklearn.base"]
POLL_SECONDS = 0.25  # at most, until a wish to stop is noticed


def threads_each(jobs: int) -> int:
    """How many threads each of so many processes gets."""
    if jobs < 1:
        raise UserError(f"jobs is {jobs}; at least one process must do the work")
    return max(1, cores() // jobs)


def run_grid(
    runs: Sequence[Run],
    path: Path,
    store: RunStore,
    *,
    jobs: int = 1,
    feature_cache: Path | None = None,
    command: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    ended: Callable[[Record], None] = lambda _: None,
    watch: Callable[[GridStatus], None] = lambda _: None,
) -> list[Record]:
    """Carry out the runs that have no result yet; returns how each of them ended, failures among
    them.

    A failure does not stop the others, and is tried again at the next call. When `stop` says so,
    the runs at work keep what they have learnt and this ends with `Interrupted`; the same call goes
    on from there, and so it does after a crash. With a `feature_cache`, a folder, runs share the
    features of frozen backbones, and no image is encoded twice. `command` is what someone types to
    do the same, for the record; `ended` is called with each run at its end, `watch` with the status
    of the whole some times a second.
    """
    start = partial(_Worker, path, threads_each(jobs), feature_cache)
    with store.alone():
        if command:
            store.add_command(command)
        return _Grid(runs, start, store, jobs, ended, watch).carry_out(stop)


def _context() -> ForkServerContext | SpawnContext:
    """How processes are started. A forked PyTorch with threads may hang, and importing it anew
    takes seconds: where there is such a thing, one process imports it and is forked before it has
    any. This package is not among what it imports, as a fork server does not know where it lies.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(SLOW_TO_IMPORT)
    return context


class _Worker:
    """A process and the run it is working on."""

    def __init__(self, path: Path, threads: int, feature_cache: Path | None) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=work, args=(path, threads, feature_cache, theirs), daemon=True
        )
        with _ignored_signals():
            self.process.start()
        theirs.close()
        self.run: Run | None = None

    def begin(self, run: Run, checkpoint: Path) -> None:
        self.run, self.started, self.doing = run, time.monotonic(), "beginning"
        self.connection.send((run.to_json(), checkpoint))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def receive(self) -> tuple[str, dict[str, Any]]:
        """What it is doing, or how its run ended; a process that ended instead has failed."""
        try:
            kind, message = self.connection.recv()
            return kind, message
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            hint = "; was the memory full? Try fewer --jobs" if code == -signal.SIGKILL else ""
            error = f"its process ended without a result (exit code {code}){hint}"
            return "failed", {"error": error}


class _Grid:
    def __init__(
        self,
        runs: Sequence[Run],
        start: Callable[[], _Worker],
        store: RunStore,
        jobs: int,
        ended: Callable[[Record], None],
        watch: Callable[[GridStatus], None],
    ) -> None:
        self.start, self.store, self.jobs = start, store, jobs
        self.ended, self.watch = ended, watch
        finished = store.finished()
        self.total, self.done_before = len(runs), sum(run.key in finished for run in runs)
        self.waiting = [run for run in runs if run.key not in finished]
        self.took = [
            (each.run, sum((each.result or {})["seconds"].values())) for each in finished.values()
        ]
        self.idle: list[_Worker] = []
        self.at_work: list[_Worker] = []
        self.records: list[Record] = []
        self.reported = 0  # records that `ended` was called with

    def carry_out(self, stop: Callable[[], bool]) -> list[Record]:
        stopping = False
        try:
            while self.at_work or (self.waiting and not stopping):
                while self.waiting and len(self.at_work) < self.jobs and not stopping:
                    self._begin(self.waiting.pop(0))
                self._report()  # when nobody waits for work
                self.watch(self._status())
                if not stopping and stop():
                    stopping = True
                    for worker in self.at_work:
                        worker.connection.send(STOP)
                ready = wait([worker.connection for worker in self.at_work], POLL_SECONDS)
                for worker in [each for each in self.at_work if each.connection in ready]:
                    self._receive(worker)
            self._report()
        finally:
            for worker in (*self.at_work, *self.idle):  # at work: an error or a second Ctrl-C
                worker.process.kill()
                worker.process.join()
        if stopping:
            raise Interrupted("stopped; the same command goes on")
        return self.records

    def _begin(self, run: Run) -> None:
        worker = self.idle.pop() if self.idle else self.start()
        worker.begin(run, self.store.checkpoint(run))
        self.at_work.append(worker)

    def _receive(self, worker: _Worker) -> None:
        kind, message = worker.receive()
        if kind == DOING:
            worker.doing = message[DOING]
            return
        self.at_work.remove(worker)
        if worker.process.is_alive():
            self.idle.append(worker)
        run = worker.run
        if kind == "stopped" or run is None:
            return
        result, error = (message, None) if kind == "done" else (None, message["error"])
        self.store.add(run, result, error)
        if result is not None:  # and safe: the checkpoint has served
            self.store.checkpoint(run).unlink(missing_ok=True)
            self.took.append((run, worker.seconds))
        self.records.append(Record(run, result, error, now()))

    def _report(self) -> None:
        for record in self.records[self.reported :]:
            self.ended(record)
        self.reported = len(self.records)

    def _status(self) -> GridStatus:
        at_work = [(each.run, each.seconds, each.doing) for each in self.at_work if each.run]
        spent = [(run, seconds) for run, seconds, _ in at_work]
        return GridStatus(
            total=self.total,
            done=self.done_before + len(self.records),
            failed=sum(record.error is not None for record in self.records),
            at_work=[f"{run.described}: {doing}" for run, _, doing in at_work],
            seconds_left=seconds_left(self.waiting, spent, self.took, self.jobs),
        )


@contextmanager
def _ignored_signals() -> Iterator[None]:
    """A process started here ignores the signals that all processes of a program get, from Ctrl-C
    in a terminal or at the end of a time limit; this process tells it to stop in good order.
    """
    caught = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def work(path: Path, threads: int, feature_cache: Path | None, connection: Connection) -> None:
    """Carry out what arrives, (run, checkpoint) each; anything that arrives meanwhile is a wish to
    stop.

    The end of the other process is one too: what a run has learnt is then kept for the next
    attempt, and this process ends.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    with threadpool_limits(threads), suppress(EOFError, OSError):  # nobody is there any more
        while (task := connection.recv()) != STOP:
            described, checkpoint = task
            connection.send(
                _attempt(Run.from_json(described), path, checkpoint, feature_cache, connection)
            )


class PipeProgress(Progress):
    """Progress sent to the other process: at each start, then once a second at most."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def start(self, total: int, doing: str, done: int = 0) -> None:
        self.total, self.doing, self.done = total, doing, done
        self._send()

    def advance(self, count: int = 1, **figures: float) -> None:
        self.done += count
        if time.monotonic() > self.sent_at + 1:
            self._send()

    def _send(self) -> None:
        self.sent_at = time.monotonic()
        doing = f"{self.doing} {self.done / max(1, self.total):.0%}"
        with suppress(OSError):  # nobody is there any more; the run stops when it asks whether to
            self.connection.send((DOING, {DOING: doing}))


def _attempt(
    run: Run, path: Path, checkpoint: Path, feature_cache: Path | None, connection: Connection
) -> tuple[str, dict[str, Any]]:
    from igd.benchmark.methods import Support
    from igd.benchmark.trial import carry_out

    support = Support(checkpoint, feature_cache, PipeProgress(connection), connection.poll)
    try:
        return "done", carry_out(run, path, support)
    except Interrupted:
        return "stopped", {}
    except UserError as error:
        checkpoint.unlink(missing_ok=True)  # it may be at fault; the next attempt starts anew
        return "failed", {"error": str(error)}
    except Exception as error:
        return "failed", {"error": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"}


@dataclass(frozen=True)
class GridStatus:
    """A grid at one moment."""

    total: int
    done: int  # those that failed among them
    failed: int
    at_work: list[str]  # the runs, and what is being done for each
    seconds_left: float | None  # None while there is nothing to go by


def seconds_left(
    waiting: Sequence[Run],
    at_work: Sequence[tuple[Run, float]],
    took: Sequence[tuple[Run, float]],
    jobs: int,
) -> float | None:
    """What is still to do, by what finished runs took; None while something is to do of which
    nothing alike has finished.
    """
    alike: dict[str, list[float]] = {}
    for run, seconds in took:
        alike.setdefault(_kind(run), []).append(seconds)
    usual = {kind: mean(seconds) for kind, seconds in alike.items()}
    left = 0.0
    for run, spent in (*((run, 0.0) for run in waiting), *at_work):
        expected = usual.get(_kind(run))
        if expected is None:
            return None
        left += max(0.0, expected - spent)
    return left / jobs


def _kind(run: Run) -> str:
    """The same for runs of the same method with the same settings on the same data."""
    return digest([run.data, run.method, run.config_hash, run.settings])
