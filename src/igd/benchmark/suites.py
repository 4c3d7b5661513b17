"""Suites: a data set and a variant of the paper's experiments on it, as the list of runs that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from igd.benchmark.datasets import DataSet, find_classes, find_data
from igd.benchmark.methods import find_method, meaning_of
from igd.benchmark.protocols import Protocol
from igd.benchmark.runs import Run
from igd.errors import UserError


@dataclass(frozen=True)
class Variant:
    """One of the paper's experiments: its protocols, the methods it compares, and the tables it fills."""

    protocols: tuple[Protocol, ...]
    methods: tuple[str, ...]
    tables: tuple[str, ...]


FULL = Protocol()
STANDARD = Variant(
    (FULL,),
    ("igd",),
    (
        *("mnist-classes", "fashion-mnist-classes", "cifar10-classes", "mvtec-classes", "mvtec-localisation-classes"),
        *("detection", "mvtec-detection", "mvtec-localisation", "medical"),
    ),
)
SMALL = Variant((Protocol(0.2), Protocol(0.6), FULL), ("dsvdd", "dsvdd+rec", "igd"), ("small",))
CONTAMINATED = Variant(
    tuple(Protocol(contamination=share) for share in (0.01, 0.05, 0.1)), ("dsvdd", "dsvdd+rec", "igd"), ("contaminated",)
)
ABLATION = Variant((FULL, Protocol(0.2), Protocol(contamination=0.1)), ("mse", "rec", "rec+gac", "igd"), ("ablation",))
VARIANTS = {"standard": STANDARD, "small": SMALL, "contaminated": CONTAMINATED, "ablation": ABLATION}


def find_suite(name: str) -> tuple[DataSet, Variant]:
    """The data set and the variant of 'mnist' or 'mnist:small'."""
    data, _, variant = name.partition(":")
    if (variant or "standard") not in VARIANTS:
        raise UserError(f"no variant of {data} is called {variant!r}; there are {', '.join(VARIANTS)}")
    return find_data(data), VARIANTS[variant or "standard"]


def plan(
    suite: str,
    path: Path,
    settings: dict[str, Any],
    classes: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
) -> list[Run]:
    """The runs of a suite, a whole table with the first seed before the second seed begins."""
    data, variant = find_suite(suite)
    if any(seed < 0 for seed in seeds):
        raise UserError(f"seed {min(seeds)} is negative; seeds are 0, 1, 2, ...")
    chosen = find_classes(data, path, classes)
    copy = data.fingerprint(path)
    data.check(path)
    runs = []
    for seed in seeds:
        for normal in chosen:
            for protocol in variant.protocols:
                for name in methods or variant.methods:
                    method = find_method(name)
                    obeyed = method.obeys(settings)
                    runs.append(Run(data.name, copy, normal, name, obeyed, meaning_of(method, obeyed), seed, protocol))
    return list({run.key: run for run in runs}.values())
