"""A process that does one thing after another, and may die of it.

python -m torture.worker reads a job a line from standard input and writes an answer a line, both
JSON. Commands run in a fork of it, so that each costs no start of PyTorch: the same `igd.cli.main`,
with limits of its own; it can be killed at any moment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

MEMORY = 12 * 2**30  # of address space: what asks for more is told so, and the machine lives on
CHECKPOINT_SECONDS = 0.02  # between two, so that short trainings have some
DEADLINE = 60.0  # seconds for one job that says nothing else
TAIL = 4000  # characters of what a command said


class Worker:
    """The process as its owner sees it: `ask` gives an answer, 'crashed' or 'hung'."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, job: dict[str, Any], deadline: float = DEADLINE) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], deadline)[0]:
            self.close()
            return {"hung": f"more than {deadline:.0f} s"}
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.close()
            return {"crashed": f"the process ended with {code}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "torture.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            assert self.process.stdout is not None
            self.process.stdout.readline()  # it has imported everything
        return self.process

    def close(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    import onnxruntime  # noqa: F401 - imported before any fork
    import torch
    import torch.onnx

    from igd.files import checkpoint_file

    checkpoint_file.SECONDS = CHECKPOINT_SECONDS
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("{}", file=answers, flush=True)
    predictors: dict[str, Any] = {}
    for line in sys.stdin:
        job = json.loads(line)
        do = {"predict": predict, "load": load, "command": command}[job["do"]]
        print(json.dumps(do(job, predictors)), file=answers, flush=True)


def predict(job: dict[str, Any], predictors: dict[str, Any]) -> dict[str, Any]:
    """Score one image by the library, with a model that stays loaded."""
    from igd.deploy.loading import load_predictor

    if job["model"] not in predictors:
        predictors[job["model"]] = load_predictor(Path(job["model"]))
    return _scored(lambda: predictors[job["model"]].predict(job["image"]))


def load(job: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    """Load a model and score one image with it."""
    from igd.deploy.loading import load_predictor

    return _scored(lambda: load_predictor(Path(job["model"])).predict(job["image"]))


def _scored(run: Any) -> dict[str, Any]:
    from igd.errors import UserError

    try:
        predicted = run()
        answer = {
            "score": predicted.score,
            "p_value": predicted.p_value,
            "is_anomalous": bool(predicted.is_anomalous),
        }
    except UserError as error:
        answer = {"refused": str(error)}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        answer = {"crashed": f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"}
    return {**answer, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def command(job: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    """Run `igd` in a fork: killed after `kill_after` seconds, asked to stop after `stop_after`,
    with files of at most `file_bytes`.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = [Path(folder) / name for name in ("out", "err")]
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _become(job, told)
        started, killed, asked, code = time.monotonic(), False, False, None
        while code is None:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            after = time.monotonic() - started
            if pid:
                code = os.waitstatus_to_exitcode(status)
            elif after > job.get("kill_after", 1e9) and not killed:
                os.kill(child, signal.SIGKILL)
                killed = True
            elif after > job.get("stop_after", 1e9) and not asked:
                os.kill(child, signal.SIGINT)
                asked = True
            else:
                time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # whatever it had started
        if job.get("warm"):
            _import(told[0].with_name("modules"))
        out, err = (path.read_text(errors="replace") if path.exists() else "" for path in told)
    return {
        "code": code,
        "killed": killed,
        "out": out if job.get("whole") else out[-TAIL:],
        "err": err if job.get("whole") else err[-TAIL:],
        "seconds": time.monotonic() - started,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def _import(listed: Path) -> None:
    """Import what a command imported, so that its next forks need not."""
    for name in listed.read_text().split("\n") if listed.exists() else ():
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _become(job: dict[str, Any], told: list[Path]) -> None:
    """The child: it never returns."""
    code = 70
    try:
        os.setsid()
        for number, path in enumerate(told, start=1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(job["cwd"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        if "file_bytes" in job:
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_bytes"],) * 2)
        from igd.cli import main as igd

        code = igd(job["command"])
        if job.get("warm"):
            told[0].with_name("modules").write_text("\n".join(sys.modules))
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
