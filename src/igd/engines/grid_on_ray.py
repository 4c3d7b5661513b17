"""The runs of a benchmark on a Ray cluster; this process alone writes the store."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from igd.benchmark.grid import GridStatus
from igd.benchmark.run import Run
from igd.benchmark.run_store import Record, RunStore, now
from igd.engines.tasks import spread
from igd.errors import UserError


def run_grid_on_ray(
    runs: Sequence[Run],
    path: Path,
    store: RunStore,
    *,
    workers: int,
    feature_cache: Path | None = None,
    command: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    ended: Callable[[Record], None] = lambda _: None,
    watch: Callable[[GridStatus], None] = lambda _: None,
) -> list[Record]:
    """What `run_grid` does, on the cluster that this process is connected to, whose machines find
    the data under the same path. A run that is stopped starts anew; finished ones are kept.
    """
    with store.alone():
        if command:
            store.add_command(command)
        finished = store.finished()
        left = [run for run in runs if run.key not in finished]
        records: list[Record] = []

        def status(at_work: Sequence[dict[str, Any]]) -> None:
            watch(
                GridStatus(
                    total=len(runs),
                    done=len(runs) - len(left) + len(records),
                    failed=sum(record.error is not None for record in records),
                    at_work=[Run.from_json(each).described for each in at_work],
                    seconds_left=None,
                )
            )

        attempt = partial(_attempt, path=path.resolve(), feature_cache=feature_cache)
        described = [run.to_json() for run in left]
        for run, (result, error) in spread(attempt, described, workers, stop, status):
            record = Record(Run.from_json(run), result, error, now())
            store.add(record.run, result, error)
            records.append(record)
            ended(record)
    return records


def _attempt(
    run: dict[str, Any], path: Path, feature_cache: Path | None
) -> tuple[dict[str, Any] | None, str | None]:
    """A run's result, or why there is none."""
    from igd.benchmark.methods import Support
    from igd.benchmark.trial import carry_out

    try:
        return carry_out(Run.from_json(run), path, Support(feature_cache=feature_cache)), None
    except UserError as error:
        return None, str(error)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
