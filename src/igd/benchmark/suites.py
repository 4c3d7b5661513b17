"""What can be run: methods by name, a data set and a variant of the paper's experiments on it, and
the list of runs that this takes.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from igd.benchmark import baselines, methods
from igd.benchmark.benchmark_data import BenchmarkData, find_classes, find_data
from igd.benchmark.methods import Method, Settings
from igd.benchmark.run import Protocol, Run, digest
from igd.errors import UserError
from igd.training.parameters import check_seed

METHODS: dict[str, type[Method]] = {
    "igd": methods.InterpolatedGaussian,
    "igd-authors": methods.AuthorsInterpolatedGaussian,
    "dsvdd": methods.DeepSVDD,
    "dsvdd+rec": methods.DeepSVDDWithReconstruction,
    "mse": methods.SquaredError,
    "rec": methods.Reconstruction,
    "rec+gac": methods.ReconstructionWithClassifier,
    "ocsvm": baselines.OneClassSVM,
    "kde": baselines.KernelDensity,
    "ocsvm-imagenet": baselines.FrozenOneClassSVM,
    "kde-imagenet": baselines.FrozenKernelDensity,
}


@dataclass(frozen=True)
class Variant:
    """One of the paper's experiments: its protocols, the methods it compares, and the tables it
    fills.
    """

    protocols: tuple[Protocol, ...]
    methods: tuple[str, ...]
    tables: tuple[str, ...]


FULL = Protocol()
STANDARD = Variant(
    (FULL,),
    ("igd",),
    (
        *("mnist-classes", "fashion-mnist-classes", "cifar10-classes", "mvtec-classes"),
        *("mvtec-localisation-classes", "detection", "mvtec-detection", "mvtec-localisation"),
        "medical",
    ),
)
SMALL = Variant((Protocol(0.2), Protocol(0.6), FULL), ("dsvdd", "dsvdd+rec", "igd"), ("small",))
CONTAMINATED = Variant(
    tuple(Protocol(contamination=share) for share in (0.01, 0.05, 0.1)),
    ("dsvdd", "dsvdd+rec", "igd"),
    ("contaminated",),
)
ABLATION = Variant(
    (FULL, Protocol(0.2), Protocol(contamination=0.1)),
    ("mse", "rec", "rec+gac", "igd"),
    ("ablation",),
)
VARIANTS = {
    "standard": STANDARD,
    "small": SMALL,
    "contaminated": CONTAMINATED,
    "ablation": ABLATION,
}


def find_suite(name: str) -> tuple[BenchmarkData, Variant]:
    """The data set and the variant of 'mnist' or 'mnist:small'."""
    data, _, variant = name.partition(":")
    if (variant or "standard") not in VARIANTS:
        raise UserError(
            f"no variant of {data} is called {variant!r}; there are {', '.join(VARIANTS)}"
        )
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
    for seed in seeds:
        check_seed(seed)
    chosen = find_classes(data, path, classes)
    if data.own_copies:
        copies = {normal: data.fingerprint(path / normal) for normal in chosen}
    else:
        copies = dict.fromkeys(chosen, data.fingerprint(path))
    data.check(path)
    for name in methods or variant.methods:
        refuse_hopeless(find_method(name), settings, data)
    runs = []
    for seed in seeds:
        for normal in chosen:
            for protocol in variant.protocols:
                for name in methods or variant.methods:
                    method = find_method(name)
                    relevant = method.relevant_settings(settings)
                    config_hash = config_hash_of(method, relevant)
                    about = (data.name, copies[normal], normal, name, relevant, config_hash)
                    runs.append(Run(*about, seed, protocol))
    return list({run.key: run for run in runs}.values())


def refuse_hopeless(method: type[Method], settings: dict[str, Any], data: BenchmarkData) -> None:
    """Before the first run, refuse what every run would be refused for."""
    from igd.scales.recipes import LARGE_SIDE, SMALL_SIDE  # here: tables need no PyTorch

    relevant = method.relevant_settings(settings)
    usual = (SMALL_SIDE,) if data.small else (SMALL_SIDE, LARGE_SIDE)
    sides = (settings["image_size"],) if settings.get("image_size") else usual
    refusals = []
    for side in sides:
        try:
            method.check(relevant, side)
        except UserError as error:
            refusals.append(error)
    if len(refusals) == len(sides):
        raise refusals[-1]


def paper_name(name: str) -> str:
    """The paper's name of a method, or nothing where it does not have it."""
    return (METHODS[name].paper_name or "") if name in METHODS else ""


def find_method(name: str) -> type[Method]:
    """A method by its name, or as FILE.py:CLASS."""
    file, _, wanted = name.rpartition(":")
    if file.endswith(".py"):
        return _own_method(Path(file), wanted)
    if name not in METHODS:
        raise UserError(
            f"no method is called {name!r}; there are {', '.join(METHODS)}, and one's own as "
            f"FILE.py:CLASS"
        )
    return METHODS[name]


def config_hash_of(method: type[Method], settings: Settings) -> str:
    """A digest of the numbers that the settings stand for, and of the user's file where the method
    comes from one.
    """
    config = method.config(settings)
    return digest([config, method.source] if method.source else config)


@cache  # so that a process knows one version of it, whatever happens to the file
def _own_method(path: Path, wanted: str) -> type[Method]:
    """A class in a file that the user names on the command line: it is run, like any program of
    theirs.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; FILE.py:CLASS names a class in a file of your own")
    # What is run is what the digest is of; an import might take an older compiled file.
    contents = path.read_bytes()
    module = ModuleType(f"own method {path}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where data classes look for their types
    try:
        exec(compile(contents, path, "exec"), module.__dict__)
    except Exception as error:
        raise UserError(f"{path}: can't be run ({type(error).__name__}: {error})") from error
    method = getattr(module, wanted, None)
    if not (
        isinstance(method, type)
        and issubclass(method, Method)
        and method.__module__ == module.__name__
    ):
        raise UserError(
            f"{path}: defines no method {wanted!r}, a class made from igd.benchmark.methods.Method"
        )
    method.source = hashlib.sha256(contents).hexdigest()
    return method
