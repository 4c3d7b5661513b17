"""One job at a time, each in a process of its own: a job that fails, or takes all memory, takes
nothing along.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from igd.deploy.studio.job_store import JobStore
from igd.deploy.studio.workspace import Workspace

INTERRUPTED = 130  # the code of a job that stopped because it was told to
LOOK = 0.1  # seconds between two looks at a running job
GRACE = 15.0  # seconds that a job has to write its checkpoint, before it is killed
TAIL = 500  # characters of what a process said last


class JobQueue:
    """A thread that runs what waits. Closing it stops the running job, which goes on when another
    studio opens the workspace.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: JobStore,
        arguments: Sequence[str],
        on_success: Callable[[], None] = lambda: None,
    ) -> None:
        self.workspace, self.store, self.arguments = workspace, store, arguments
        self.on_success = on_success  # before anyone hears that a job is done
        self._changed = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        self.store.recover()
        self._thread.start()

    def wake(self) -> None:
        """There is something new to do, or to stop."""
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._closed:
            self._changed.clear()
            if job := self.store.take():
                self._run(job)
            else:
                self._changed.wait()

    def _run(self, job: dict[str, Any]) -> None:
        number = job["id"]
        log = self.workspace.folder / "last-job.log"
        with log.open("w+b") as said:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "igd.deploy.studio.job_worker"),
                    *(str(self.workspace.folder), str(number), *self.arguments),
                ],
                stdin=subprocess.PIPE,  # whose end tells the job that the studio is gone
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for the studio, which stops the job in order
            )
            self._watch(process, number)
        if process.returncode == 0:
            self.on_success()
            self.store.finish(number, "done")
        elif self._closed:
            self.store.finish(number, "queued")
        elif process.returncode == INTERRUPTED or self.store.is_to_stop(number):
            self.store.finish(number, "stopped")
        else:
            self.store.finish(number, "failed", self._why(process.returncode, number, log))

    def _watch(self, process: subprocess.Popen[bytes], number: int) -> None:
        asked: float | None = None
        while process.poll() is None:
            if asked is None and (self._closed or self.store.is_to_stop(number)):
                asked = time.monotonic()
                process.terminate()
            if asked is not None and time.monotonic() - asked > GRACE:
                process.kill()
            self._changed.wait(LOOK)
            self._changed.clear()
        if process.stdin:
            process.stdin.close()

    def _why(self, code: int, number: int, log: Path) -> str | None:
        """Why a job failed, unless it said so itself."""
        if self.store.get(number)["error"]:
            return None
        if code < 0:
            return (
                f"its process was ended from outside (signal {-code}); was there too little memory?"
            )
        return log.read_text(encoding="utf-8", errors="replace").strip()[-TAIL:] or f"code {code}"
