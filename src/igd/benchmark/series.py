"""Runs that belong together: one method with one set of settings, over classes, protocols and seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from igd.benchmark.datasets import find_data
from igd.benchmark.methods import METHODS
from igd.benchmark.protocols import Protocol
from igd.benchmark.runs import Run, digest
from igd.benchmark.store import Record


@dataclass(frozen=True)
class Spread:
    """A figure over seeds."""

    value: float
    deviation: float | None  # None for one seed


@dataclass(frozen=True)
class Series:
    """The finished runs of one method with one set of settings on one data set."""

    label: str
    records: tuple[Record, ...]

    @property
    def run(self) -> Run:
        """One of them, for what they have in common."""
        return self.records[0].run

    @property
    def protocols(self) -> set[Protocol]:
        return {record.run.protocol for record in self.records}

    @property
    def other_test_set(self) -> int | None:
        """How many test images there were before any contamination, where the data set was published with another number."""
        published = find_data(self.run.data).test_images
        if published is None:
            return None
        return max({_tested(record) for record in self.records} - {published}, default=None)

    def seeds(self, protocols: Iterable[Protocol]) -> list[int]:
        return sorted({record.run.seed for record in self.records if record.run.protocol in set(protocols)})

    def classes(self, protocol: Protocol) -> set[str]:
        return {record.run.normal for record in self.records if record.run.protocol == protocol}

    def over_seeds(self, metric: str, protocol: Protocol, classes: Sequence[str]) -> Spread | None:
        """The mean over these classes, of each seed that has them all."""
        by_seed: dict[int, list[float]] = {}
        for record in self.records:
            value = (record.result or {})["metrics"].get(metric)
            if value is not None and record.run.protocol == protocol and record.run.normal in classes:
                by_seed.setdefault(record.run.seed, []).append(value)
        means = [mean(values) for values in by_seed.values() if len(values) == len(classes)]
        if not means:
            return None
        return Spread(mean(means), stdev(means) if len(means) > 1 else None)


def series_of(records: Iterable[Record], data: str) -> list[Series]:
    """Finished runs on a data set, grouped by what made them, in the order of METHODS."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        run = record.run
        if record.result is not None and run.data == data:
            groups.setdefault(digest([run.method, run.settings, run.meaning, run.copy, run.made_by]), []).append(record)
    labels = {key: _label(group[0].run) for key, group in groups.items()}
    times = Counter(labels.values())
    for key, group in groups.items():
        if times[labels[key]] > 1:  # a recipe, the data or igd itself has changed in between
            labels[key] += f" ({group[0].run.made_by}, {key[:4]})"
    order = {name: number for number, name in enumerate(METHODS)}
    series = [Series(labels[key], tuple(group)) for key, group in groups.items()]
    return sorted(series, key=lambda each: order.get(each.run.method, len(order)))


def _tested(record: Record) -> int:
    result = record.result or {}
    all_moved = (step["moved"] for step in result["protocols"])  # a store says which, an export how many
    moved = sum(each if isinstance(each, int) else len(each) for each in all_moved)
    return int(result["images"]["normal"] + result["images"]["anomalous"] + moved)


def _label(run: Run) -> str:
    settings = {name: value for name, value in run.settings.items() if name != "objective"}
    parts = [run.method, settings.pop("recipe", None), settings.pop("pretrain", None)]
    parts += [f"{name.replace('_', ' ')} {_said(value)}" for name, value in sorted(settings.items())]
    return ", ".join(part for part in parts if part)


def _said(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
