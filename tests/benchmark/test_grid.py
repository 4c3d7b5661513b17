"""Many runs in processes of their own: killed, stopped, failing, and always completed without
repeating what was finished.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import write_digits

from igd import UserError
from igd.benchmark.grid import GridStatus, run_grid, seconds_left, threads_each
from igd.benchmark.run import Run
from igd.benchmark.run_store import RunStore
from igd.benchmark.suites import plan
from igd.errors import Interrupted

QUICK = {"recipe": "fast", "pretrain": "scratch", "steps": 3, "width": 4}


GATED = """
import time
from collections.abc import Callable
from pathlib import Path

from igd.benchmark.methods import InterpolatedGaussian

HERE = Path(__file__).parent


class Gated(InterpolatedGaussian):
    '''IGD that trains when it may, or takes one step when it is told to stop.'''

    def fit(self, images):
        (HERE / "begun").touch()
        while not (HERE / "open").exists() and not self.support.stop():
            time.sleep(0.02)
        super().fit(images)
"""


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    """Until it holds; on a busy machine that takes long, and without a bound for ever."""
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience
        time.sleep(0.05)


def test_a_killed_grid_goes_on_where_it_was(digits: Path, tmp_path: Path) -> None:
    """SIGKILL in the middle of the second of three runs: the first stays, the second keeps its
    checkpoint, and nothing is done twice.
    """
    results, gated = tmp_path / "results.sqlite", tmp_path / "gated.py"
    gated.write_text(GATED)
    command = [sys.executable, "-m", "igd.cli", "benchmark", "run", "mnist"]
    command += ["--data", str(digits), "--store", str(results), "--classes", "0"]
    command += ["--methods", "ocsvm", f"{gated}:Gated", "kde", "--pretrain", "scratch"]
    command += ["--steps", "4", "--width", "4", "--quiet", "--json"]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    first = json.loads(killed.stdout.readline())
    wait_for((tmp_path / "begun").exists)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    store = RunStore(results)
    before = store.finished()
    assert list(before) == [Run.from_json(first["run"]).key]
    wait_for(lambda: list(store.workplace.glob("*.checkpoint")))  # by the orphan, before it ends
    (kept,) = store.workplace.glob("*.checkpoint")
    assert kept.stem not in before

    (tmp_path / "open").touch()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    done_now = [Run.from_json(json.loads(line)["run"]).key for line in again.stdout.splitlines()]
    after = store.finished()
    assert len(after) == 3
    assert kept.stem in done_now
    assert set(done_now) == after.keys() - before.keys()
    assert all(after[key] == record for key, record in before.items())
    assert [path.name for path in store.workplace.iterdir()] == ["lock"]  # checkpoints have served


@pytest.mark.parametrize("sent", [None, signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_leaves_its_checkpoint(
    digits: Path, tmp_path: Path, sent: signal.Signals | None
) -> None:
    """The same where the signal that stops the program reaches its workers too, as from a terminal
    or `timeout`.
    """

    def stop() -> bool:
        for process in multiprocessing.active_children() if sent else []:
            os.kill(process.pid or 0, sent or 0)
        return True

    store = RunStore(tmp_path / "a.sqlite", create=True)
    (run,) = plan("mnist", digits, {**QUICK, "steps": 100_000}, ["0"], ["igd"])
    with pytest.raises(Interrupted, match="the same command goes on"):
        run_grid([run], digits, store, stop=stop)
    assert store.checkpoint(run).is_file()
    assert store.records() == []


def test_a_process_that_dies_is_a_failure_and_is_tried_again(digits: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "a.sqlite", create=True)
    runs = plan("mnist", digits, QUICK, ["0"], ["ocsvm"])

    def kill(_: GridStatus) -> None:
        for process in multiprocessing.active_children():
            os.kill(process.pid or 0, signal.SIGKILL)

    (failed,) = run_grid(runs, digits, store, watch=kill)
    assert failed.error == (
        "its process ended without a result (exit code -9); was the memory full? Try fewer --jobs"
    )
    assert store.finished() == {}
    (done,) = run_grid(runs, digits, store)
    assert done.error is None
    assert run_grid(runs, digits, store) == []


def test_an_error_of_one_run_does_not_stop_the_others(tmp_path: Path) -> None:
    # Two images of class 0 are too few.
    path = write_digits(tmp_path / "mnist.npz", {0: 2, 1: 12}, {0: 4, 1: 4})
    store = RunStore(tmp_path / "a.sqlite", create=True)
    statuses: list[GridStatus] = []
    records = run_grid(
        plan("mnist", path, QUICK, ["0", "1"], ["igd"]), path, store, jobs=2, watch=statuses.append
    )
    assert {record.run.normal: record.error is None for record in records} == {
        "0": False,
        "1": True,
    }
    (error,) = (record.error for record in store.records() if record.error)
    assert "too few" in error
    assert (statuses[0].total, statuses[0].done, len(statuses[0].at_work)) == (2, 0, 2)
    assert statuses[0].seconds_left is None
    assert statuses[0].at_work[0] == "mnist 0, igd, seed 0: beginning"
    lines = {line for status in statuses for line in status.at_work}
    assert any(
        line.startswith("mnist 1, igd, seed 0: training") and line.endswith("%") for line in lines
    )


def test_threads_are_divided_among_the_processes() -> None:
    cores = threads_each(1)
    assert threads_each(cores) == 1
    assert threads_each(10 * cores) == 1
    with pytest.raises(UserError, match="jobs is 0; at least one process must do the work"):
        run_grid([], Path(), None, jobs=0)  # type: ignore[arg-type]


def test_time_left_is_that_of_runs_alike() -> None:
    def run(method: str, seed: int = 0) -> Run:
        return Run("mnist", "", "0", method, {}, "", seed)

    took = [(run("igd"), 100.0), (run("kde"), 10.0)]
    waiting = [run("igd", 1), run("kde", 1)]
    assert seconds_left(waiting, [(run("igd", 2), 40.0)], took, jobs=1) == 100 + 10 + 60
    assert seconds_left(waiting, [(run("igd", 2), 400.0)], took, jobs=2) == (100 + 10) / 2
    # Nothing like the first has finished.
    assert seconds_left([run("mse"), run("igd")], [], took, jobs=1) is None
    assert seconds_left([], [], [], jobs=1) == 0
