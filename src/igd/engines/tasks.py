"""Independent pieces of work on a Ray cluster, a core each: results come as they are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from igd.errors import Interrupted

Item = TypeVar("Item")
Result = TypeVar("Result")
POLL_SECONDS = 0.25  # at most, until a wish to stop is noticed
RETRIES = 3  # of a piece whose worker was lost; what it raises itself is not tried again


def spread(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int,
    stop: Callable[[], bool] = lambda: False,
    watch: Callable[[Sequence[Item]], None] = lambda _: None,
) -> Iterator[tuple[Item, Result]]:
    """Each item with the function's result, in any order, on the cluster that this process is
    connected to.

    `watch` is called with the items at work some times a second. When `stop` says so, those are
    given up and this ends with `Interrupted`.
    """
    import ray

    remote: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(_in_one_thread)
    waiting, at_work = list(reversed(items)), dict[Any, Item]()
    try:
        while waiting or at_work:
            while waiting and len(at_work) < workers:
                item = waiting.pop()
                at_work[remote.remote(function, item)] = item
            watch(list(at_work.values()))
            if stop():
                raise Interrupted("stopped; the same command goes on")
            ready, _ = ray.wait(list(at_work), timeout=POLL_SECONDS)
            for each in ready:
                item = at_work.pop(each)
                yield item, ray.get(each)
    finally:
        for each in at_work:
            ray.cancel(each, force=True)


def _in_one_thread(function: Callable[[Item], Result], item: Item) -> Result:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    with threadpool_limits(1):
        return function(item)
