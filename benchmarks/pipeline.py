"""A day's images through workers that fail now and then: how long images wait, how much is scored
twice, and how far behind the pipeline gets. A simulation; nothing is scored.

Images arrive at random, at a rate that swings over the day. They are collected into shards, and a
free worker takes the oldest; a worker that fails loses its shard, which goes to the front of the
queue, and comes back after a while. The defaults are 100 million images a day on workers of 20
images a second.

python benchmarks/pipeline.py
python benchmarks/pipeline.py --workers 60 --hours 24
python benchmarks/pipeline.py --failures-per-day 24 --shard 4096
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

DAY = 86_400.0
ARRIVES, DONE, FAILS, RETURNS = range(4)


@dataclass(frozen=True)
class Plant:
    """What is simulated."""

    images_per_day: float = 100e6
    swing: float = 0.3  # of the rate around its mean, over a day
    shard: int = 256  # images that a worker scores in one piece
    workers: int = 84
    images_per_second: float = 20.0  # of a worker
    failures_per_day: float = 1.0  # of a worker
    seconds_away: float = 60.0  # until a worker that failed is back, with its model
    hours: float = 4.0
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of the images."""

    images: int
    busy: float  # share of the workers' time
    wait_p50: float  # seconds from a shard's last image to its scores
    wait_p99: float
    most_waiting: int  # images in the queue
    waiting_at_the_end: int
    failures: int
    scored_twice: float  # share of the images, whose scores came from the second attempt


def simulate(plant: Plant) -> Outcome:
    """Shards as events: they arrive, are done, or fail with their worker."""
    rng, end = np.random.default_rng(plant.seed), 3600 * plant.hours
    takes = plant.shard / plant.images_per_second
    events: list[tuple[float, int, int]] = [(_next_arrival(plant, 0.0, rng), ARRIVES, 0)]
    waiting: deque[float] = deque()  # when each arrived
    idle, waits = list(range(plant.workers)), list[float]()
    held: dict[int, float] = {}  # by worker, when its shard arrived
    most = failures = arrived = 0
    busy = 0.0
    while events:
        now, kind, worker = heapq.heappop(events)
        if now > end:
            break
        if kind == ARRIVES:
            arrived += 1
            waiting.append(now)
            heapq.heappush(events, (_next_arrival(plant, now, rng), ARRIVES, 0))
        elif kind == DONE:
            waits.append(now - held.pop(worker))
            idle.append(worker)
        elif kind == FAILS:
            failures += 1
            waiting.appendleft(held.pop(worker))
            heapq.heappush(events, (now + plant.seconds_away, RETURNS, worker))
        else:
            idle.append(worker)
        most = max(most, len(waiting))
        while waiting and idle:
            worker = idle.pop()
            held[worker] = waiting.popleft()
            until = rng.exponential(DAY / plant.failures_per_day) if plant.failures_per_day else end
            seconds, how = (until, FAILS) if until < takes else (takes, DONE)
            busy += seconds
            heapq.heappush(events, (now + seconds, how, worker))
    p50, p99 = np.percentile(waits, [50, 99]) if waits else (math.inf, math.inf)
    return Outcome(
        images=len(waits) * plant.shard,
        busy=min(1.0, busy / (plant.workers * end)),
        wait_p50=float(p50),
        wait_p99=float(p99),
        most_waiting=most * plant.shard,
        waiting_at_the_end=len(waiting) * plant.shard,
        failures=failures,
        scored_twice=failures / max(1, arrived),
    )


def _next_arrival(plant: Plant, now: float, rng: np.random.Generator) -> float:
    """When the next shard is complete: its images come at random, so its gap is a sum of theirs."""
    swing = 1 + plant.swing * math.sin(2 * math.pi * now / DAY)
    rate = plant.images_per_day / DAY * swing
    return now + float(rng.gamma(plant.shard, 1 / rate))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in vars(Plant()).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(default), default=default, help="default: %(default)s")
    plant = Plant(**vars(parser.parse_args()))
    offered = plant.images_per_day / DAY / (plant.workers * plant.images_per_second)
    outcome = simulate(plant)
    print(
        f"{plant.images_per_day / DAY:,.0f} images a second on {plant.workers} workers of ", end=""
    )
    print(f"{plant.images_per_second:g}: {offered:.0%} of what they can do, on average")
    print(f"scored                    {outcome.images:>14,} images in {plant.hours:g} hours")
    print(f"workers busy              {outcome.busy:>14.0%}")
    print(f"wait, half of the images  {outcome.wait_p50:>12.0f} s")
    print(f"wait, all but 1 %         {outcome.wait_p99:>12.0f} s")
    print(f"longest queue             {outcome.most_waiting:>14,} images")
    print(f"queue at the end          {outcome.waiting_at_the_end:>14,} images")
    print(f"workers lost              {outcome.failures:>14,}")
    print(f"scored a second time      {outcome.scored_twice:>14.3%}")


if __name__ == "__main__":
    main()
