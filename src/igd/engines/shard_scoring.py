"""Images through Ray's workers: each loads the model once, and scores one shard after another.

Ray Data hands out shards as workers become free, holds back what nobody has room for, starts a
worker that was lost again and gives its shard to another. This process gets the rows and is the
only one that writes.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from igd.engines.shards import ScoredShard, Shard
from igd.errors import UserError

IN_FLIGHT = 2  # shards that a worker has, so that it need not wait for the next


class ShardScorer:
    """A worker: a model in a process of its own."""

    def __init__(self, model: Any, suffix: str, rate: float, folder: str) -> None:
        import ray

        with suppress(OSError):  # of another machine, where paths are absolute
            os.chdir(folder)
        os.environ["OMP_NUM_THREADS"] = "1"  # a core each; there are as many workers as cores
        from igd.deploy.loading import load_predictor

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the process that started us has said it
            path = Path(folder) / f"model{suffix}"
            path.write_bytes(ray.get(model))
            self.predictor = load_predictor(path)
        self.predictor.max_false_alarms = rate
        self.restarted = bool(ray.get_runtime_context().was_current_actor_reconstructed)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Score the shards of a batch, one row each."""
        shards = zip(batch["number"].tolist(), batch["names"], strict=True)
        return {"scored": [json.dumps(self._attempt(Shard(n, json.loads(x)))) for n, x in shards]}

    def _attempt(self, shard: Shard) -> ScoredShard | str:
        """A model that is damaged is so everywhere: no other worker need try."""
        try:
            return self.scored(shard)
        except UserError as error:
            return str(error)

    def scored(self, shard: Shard) -> ScoredShard:
        from igd.evaluation.results import as_row

        started, rows, mismatches = time.perf_counter(), [], {}
        predictions = self.predictor.predictions(shard.names)
        for name, prediction in zip(shard.names, predictions, strict=True):
            rows.append(as_row(name, prediction, self.predictor))
            if not isinstance(prediction, UserError) and prediction.mismatches:
                mismatches[name] = list(prediction.mismatches)
        worker, seconds = f"{socket.gethostname()}:{os.getpid()}", time.perf_counter() - started
        return ScoredShard(shard.number, rows, mismatches, worker, self.restarted, seconds)


def score_shards(
    model: Path, rate: float, shards: Sequence[Shard], workers: int
) -> Iterator[ScoredShard]:
    """Score shards on the cluster that this process is connected to, in any order, each as soon as
    it is done.
    """
    import ray
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what fails is raised
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    items = [{"number": each.number, "names": json.dumps(each.names)} for each in shards]
    workers = min(workers, len(items))
    scored = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        ShardScorer,
        fn_constructor_args=(ray.put(model.read_bytes()), model.suffix, rate, str(Path.cwd())),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=IN_FLIGHT),
        num_cpus=1,
    )
    try:
        for batch in scored.iter_batches(batch_size=None, prefetch_batches=0):
            for each in map(json.loads, batch["scored"]):
                if isinstance(each, str):
                    raise UserError(each)
                yield ScoredShard(*each)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().rpartition("\n")[2]
        raise RuntimeError(f"the workers of Ray failed: {reason}") from error
