"""ONNX Runtime sessions, and PyTorch's threads, after a fork.

Threads don't follow a process into its fork. Whoever waits for them there waits for ever: ONNX
Runtime for those of its session, OpenMP, which PyTorch uses, for those of its pool. So a child gets
sessions of its own, and both work with one thread there.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import onnxruntime


class Session:
    """An ONNX Runtime session on the CPU. `model` is called for the graph once more in each fork
    that uses the session, and after it was closed.
    """

    def __init__(self, model: Callable[[], bytes], threads: int) -> None:
        self._model, self._threads = model, threads
        self._opened: onnxruntime.InferenceSession | None = _open(model(), threads)
        _SESSIONS.add(self)

    @property
    def opened(self) -> onnxruntime.InferenceSession:
        """The session of this process."""
        opened = self._opened
        if opened is None:
            opened = self._opened = _open(self._model(), self._threads)
        return opened

    def run(self, inputs: dict[str, Any]) -> Any:
        return self.opened.run(None, inputs)

    def close(self) -> None:
        """Give back its memory, most of it room for intermediate results; it opens when it is used
        again.
        """
        self._opened = None

    def _leave_to_parent(self) -> None:
        """Never use the parent's session here, nor end it, which would wait for its threads."""
        self._threads = 1
        if self._opened is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._opened))
            self._opened = None


_SESSIONS: weakref.WeakSet[Session] = weakref.WeakSet()


def _open(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Threads that wait spin otherwise, and take the core from the one that is waited for.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # From memory: a graph can name other files, and none of them is opened.
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _in_child() -> None:
    for session in list(_SESSIONS):
        session._leave_to_parent()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_in_child)
