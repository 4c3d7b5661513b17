"""Runs that belong together: one method with one set of settings, over classes, protocols and
seeds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from igd.benchmark.benchmark_data import BenchmarkData, find_data
from igd.benchmark.run import Protocol, Run, digest
from igd.benchmark.run_store import Record
from igd.benchmark.suites import METHODS

# Scales that train nothing with the paper's objective, `pixel` being one of older runs.
UNTRAINED = ("position", "bank", "whole", "embedding", "pixel")
FROZEN = (
    "closed forms of frozen features: of positions a relative of PaDiM (Defard et al., 2021), of "
    "embeddings as Rippel et al. (2021), a bank as PatchCore (Roth et al., 2022)"
)
UNTRAINED_NOTES = {
    "all": f"{FROZEN}; nothing is trained with the paper's objective",
    "some": f"the paper's auto-encoders together with {FROZEN}",
}


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
    def untrained(self) -> str | None:
        """What part scales that train nothing have in the scores: all, some or none (None)."""
        return _untrained(self.records[0])

    @property
    def protocols(self) -> set[Protocol]:
        return {record.run.protocol for record in self.records}

    @property
    def other_test_set(self) -> int | None:
        """How many test images there were before any contamination, where the data set was
        published with another number.
        """
        published = find_data(self.run.data).test_images
        if published is None:
            return None
        return max({_tested(record) for record in self.records} - {published}, default=None)

    def seeds(self, protocols: Iterable[Protocol]) -> list[int]:
        return sorted(
            {record.run.seed for record in self.records if record.run.protocol in set(protocols)}
        )

    def classes(self, protocol: Protocol) -> set[str]:
        return {record.run.normal for record in self.records if record.run.protocol == protocol}

    def over_seeds(self, metric: str, protocol: Protocol, classes: Sequence[str]) -> Spread | None:
        """The mean over these classes, of each seed that has them all."""
        by_seed: dict[int, list[float]] = {}
        for record in self.records:
            value = metric_of(record, metric)
            here = record.run.protocol == protocol and record.run.normal in classes
            if here and value is not None:
                by_seed.setdefault(record.run.seed, []).append(value)
        means = [mean(values) for values in by_seed.values() if len(values) == len(classes)]
        if not means:
            return None
        return Spread(mean(means), stdev(means) if len(means) > 1 else None)

    def warnings(self, protocols: Iterable[Protocol]) -> list[str]:
        """The warnings that trainings recorded, the most frequent first, each with how many of the
        runs have it.
        """
        shown = [record for record in self.records if record.run.protocol in set(protocols)]
        counts = Counter(name for record in shown for name in set(warnings_of(record)))
        ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return [f"{name} ({count} of {len(shown)} runs)" for name, count in ranked]


def metric_of(record: Record, name: str) -> float | None:
    if name == "accuracy_at_half" and half_is_stale(record):
        return None
    value = (record.result or {})["metrics"].get(name)
    return None if value is None else float(value)


def half_is_stale(record: Record) -> bool:
    """Whether a run's accuracy at 1/2 is from before 1/2 became the threshold of recipe `fast`:
    it is then not the accuracy that the run's misses and false alarms make.
    """
    result = record.result or {}
    metrics, run = result["metrics"], record.run
    needed = ("accuracy_at_half", "miss_rate", "false_alarm_rate")
    if run.settings.get("recipe") != "fast" or "code" in run.made_by:
        return False
    if any(metrics.get(name) is None for name in needed):
        return False
    normal, anomalous = result["images"]["normal"], result["images"]["anomalous"]
    wrong = metrics["false_alarm_rate"] * normal + metrics["miss_rate"] * anomalous
    return bool(abs(1 - wrong / (normal + anomalous) - metrics["accuracy_at_half"]) > 1e-9)


def warnings_of(record: Record) -> list[str]:
    """The warnings of a run's training, without their figures and advice."""
    texts = (record.result or {}).get("warnings", [])
    return [re.split(r" \(|; |: (?=it )", text)[0] for text in texts]


def classes_of(data: BenchmarkData, series: Sequence[Series]) -> list[str]:
    """The data set's classes in its order; those that were run, where it has none of its own."""
    run = {record.run.normal for each in series for record in each.records}
    return list(data.classes or sorted(run))


def series_of(records: Iterable[Record], data: str) -> list[Series]:
    """Finished runs on a data set, grouped by what made them, in the order of METHODS."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        run = record.run
        if record.result is not None and run.data == data:
            copy = _generation(groups, run) if find_data(data).own_copies else run.copy
            made = [run.method, run.settings, run.config_hash, copy, run.made_by]
            groups.setdefault(digest([*made, _untrained(record)]), []).append(record)
    labels = {key: _label(group[0]) for key, group in groups.items()}
    times = Counter(labels.values())
    for key, group in groups.items():
        if times[labels[key]] > 1:  # a recipe, the data or igd itself has changed in between
            labels[key] += f" ({group[0].run.made_by}, {key[:4]})"
    order = {name: number for number, name in enumerate(METHODS)}
    series = [Series(labels[key], tuple(group)) for key, group in groups.items()]
    return sorted(series, key=lambda each: order.get(each.run.method, len(order)))


def _generation(groups: dict[str, list[Record]], run: Run) -> int:
    """Which copy of its class's files a run is of: 0 for the first that the store has."""
    runs = (record.run for group in groups.values() for record in group)
    copies = list(dict.fromkeys(each.copy for each in runs if each.normal == run.normal))
    return copies.index(run.copy) if run.copy in copies else len(copies)


def _untrained(record: Record) -> str | None:
    scales = (record.result or {}).get("method", {}).get("scales", [])
    if not set(scales) & set(UNTRAINED):
        return None
    return "all" if set(scales) <= set(UNTRAINED) else "some"


def _tested(record: Record) -> int:
    result = record.result or {}
    # A store says which images were moved, an export how many.
    all_moved = (step["moved"] for step in result["protocols"])
    moved = sum(each if isinstance(each, int) else len(each) for each in all_moved)
    return int(result["images"]["normal"] + result["images"]["anomalous"] + moved)


def _frozen_name(record: Record) -> str:
    """Those of a run's scales that train nothing."""
    scales = (record.result or {}).get("method", {}).get("scales", [])
    names = {
        "position": "Gaussian per position",
        "pixel": "Gaussian per position",
        "embedding": "Gaussian of embeddings",
    }
    return " + ".join(names.get(each, each) for each in scales if each in UNTRAINED)


def _label(record: Record) -> str:
    """The method and its settings; scales that train nothing under their own names."""
    run, part = record.run, _untrained(record)
    settings = {name: value for name, value in run.settings.items() if name != "objective"}
    frozen = _frozen_name(record)
    name = run.method.rpartition(":")[2]  # of FILE.py:CLASS, the class
    method = {"all": frozen, "some": f"{name} + {frozen}"}.get(part or "", name)
    parts = [method, settings.pop("recipe", None), settings.pop("pretrain", None)]
    for name, value in sorted(settings.items()):
        values = value if isinstance(value, list | tuple) else [value]
        listed = "+".join("position" if each == "pixel" else str(each) for each in values)
        parts.append(f"{name.replace('_', ' ')} {listed}")
    return ", ".join(part for part in parts if part)
