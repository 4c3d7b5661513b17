"""The cores and the memory of this machine, how work is spread over them, and whether it multiplies
in bfloat16.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from igd.errors import UserError

TURN = 5e-4  # seconds
DECODERS = 4  # threads; Pillow decodes outside the interpreter's lock

PRODUCT = "import torch; one = torch.ones(256, 256, dtype=torch.bfloat16); one @ one"
# What a process ends with that came upon an instruction its processor has not: on POSIX, on
# Windows.
ILLEGAL = (-signal.SIGILL, 0xC000001D)
PATIENCE = 120  # seconds
WITHOUT_MATRIX_UNITS = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """Threads to use: what OMP_NUM_THREADS asks for, else one for every core."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else cores()


def let_waiting_threads_sleep() -> None:
    """For a process whose machine may do other work too, before it or its children import torch.

    Threads of GNU's OpenMP that wait for each other spin for milliseconds, which on a busy machine
    keeps the one that is waited for off its core. A thousand spins, then sleep, cost little on an
    idle machine, where sleeping at once takes up to a third longer (benchmarks/waiting.py).
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def let_threads_take_turns() -> None:
    """For a process that decodes or answers while it scores.

    A thread keeps Python's lock for 5 ms while others want it. Scoring asks for it between many
    short operations, and waits that long each time; with turns of half a millisecond a server
    answers a tenth more requests.
    """
    sys.setswitchinterval(TURN)


def return_freed_memory() -> None:
    """Give memory that was freed back to the system, between two parts of a training that need
    blocks of different sizes: glibc would keep it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def in_parallel(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    size: Callable[[Item], int] = lambda _: 0,
    most: int = 0,
) -> Iterator[Result]:
    """Apply `function` to each item in a few threads; results come in order, and only a few are
    held at once: as many as have `most` of `size` together, and always one.
    """
    with ThreadPoolExecutor(DECODERS) as pool:
        waiting: deque[tuple[int, Future[Result]]] = deque()
        held, coming = 0, iter(items)
        item, weight = next(coming, None), None
        while item is not None or waiting:
            while item is not None and len(waiting) < 4 * DECODERS:
                weight = size(item) if weight is None else weight
                if waiting and held + weight > most > 0:
                    break
                waiting.append((weight, pool.submit(function, item)))
                held += weight
                item, weight = next(coming, None), None
            done, result = waiting.popleft()
            yield result.result()
            del result
            held -= done


def chained(
    function: Callable[[Item], Iterable[Result]], items: Iterable[Item], at_once: int
) -> Iterator[Result]:
    """The results of `function` for one item after the other, in order; so many items are worked
    on at once, each in a thread of its own. Where it is one, nothing is done ahead.
    """
    if at_once == 1:
        for item in items:
            yield from function(item)
        return
    with ThreadPoolExecutor(at_once) as pool:
        waiting: deque[Future[list[Result]]] = deque()
        coming = iter(items)
        try:
            while True:
                try:
                    waiting.append(pool.submit(lambda each: list(function(each)), next(coming)))
                except StopIteration:
                    break
                except Exception:  # comes after the results of what came before
                    while waiting:
                        yield from waiting.popleft().result()
                    raise
                if len(waiting) > at_once:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


@cache
def multiplies_bfloat16() -> bool | None:
    """Whether a product in bfloat16 ends well, tried in a process of its own, under this one's
    environment; None where it could not be tried.

    Some virtual machines announce matrix units (AMX) without saying how large they are. PyTorch
    believes them, and the first product ends the process, which nothing can catch.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; {PRODUCT}"
    try:
        tried = subprocess.run(
            [sys.executable or "python", "-c", code], capture_output=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return False if tried.returncode in ILLEGAL else True if tried.returncode == 0 else None


def require_bfloat16(precision: str) -> None:
    """Refuse a precision that rounds to bfloat16 where that would end the process."""
    if precision.startswith("bf16") and multiplies_bfloat16() is False:
        raise UserError(
            f"precision {precision!r} can't be used here: this machine announces matrix units "
            f"(AMX) that end the process when they are used; leave the precision at 32-true, or "
            f"set {WITHOUT_MATRIX_UNITS} in the environment"
        )
