"""A model for each category of a folder, here or on a Ray cluster: plants have many products.

Whoever trains gives the model back as the bytes of its file, and one process writes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from igd.errors import UserError
from igd.files import atomic

SUFFIX = ".igd"


class TrainedCategory(NamedTuple):
    """What became of a category, for a line of a table."""

    category: str
    images: int = 0
    promised_rate: float | None = None  # of false alarms
    threshold: float | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str | None = None


def categories(folder: Path) -> list[Path]:
    """The folders in a folder, each of which has images of its own."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; --each takes a folder of categories")
    found = sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    if not found:
        raise UserError(f"{folder}: no folders in it; without --each it is one category")
    return found


def train_each(
    folders: Sequence[Path],
    output: Path,
    parameters: dict[str, Any],
    workers: int | None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[TrainedCategory]:
    """Train a model for each folder and write it to the output; a category that fails does not
    stop the others. With `workers`, on the cluster that this process is connected to.
    """
    train = partial(_train, parameters=parameters)
    trained: Iterator[tuple[Path, tuple[TrainedCategory, bytes | None]]]
    if workers is None:
        trained = ((each, train(each)) for each in folders if not stop())
    else:
        from igd.engines.tasks import spread

        trained = spread(train, [each.resolve() for each in folders], workers, stop)
    for folder, (told, model) in trained:
        if model is not None:
            with atomic(output / f"{folder.name}{SUFFIX}") as part:
                part.write_bytes(model)
        yield told


def _train(folder: Path, parameters: dict[str, Any]) -> tuple[TrainedCategory, bytes | None]:
    from igd.data.reading import read_dataset
    from igd.detector import IGD
    from igd.persistence.model_file import to_bytes

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are in the model, and in the table
            detector = IGD(**parameters).fit(read_dataset(folder))
    except UserError as error:
        return TrainedCategory(folder.name, error=str(error)), None
    except Exception as error:
        return TrainedCategory(folder.name, error=f"{type(error).__name__}: {error}"), None
    made = detector.provenance_
    told = TrainedCategory(
        folder.name,
        made["images"],
        detector.false_alarm_rate_,
        detector.threshold_,
        made["seconds"],
        tuple(made["warnings"]),
    )
    return told, to_bytes(detector.fitted_)
