"""The methods by name, and those in a file of the user's own."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from igd.benchmark import classical, deep
from igd.benchmark.method import Method, Settings
from igd.benchmark.runs import digest
from igd.errors import UserError

METHODS: dict[str, type[Method]] = {
    "igd": deep.InterpolatedGaussian,
    "igd-authors": deep.AuthorsInterpolatedGaussian,
    "dsvdd": deep.DeepSVDD,
    "dsvdd+rec": deep.DeepSVDDWithReconstruction,
    "mse": deep.SquaredError,
    "rec": deep.Reconstruction,
    "rec+gac": deep.ReconstructionWithClassifier,
    "ocsvm": classical.OneClassSVM,
    "kde": classical.KernelDensity,
    "ocsvm-imagenet": classical.FrozenOneClassSVM,
    "kde-imagenet": classical.FrozenKernelDensity,
}


def paper_name(name: str) -> str:
    """What the paper calls a method, or nothing where it does not have it."""
    return (METHODS[name].paper_name or "") if name in METHODS else ""


def find_method(name: str) -> type[Method]:
    """A method by its name, or as FILE.py:CLASS."""
    file, _, wanted = name.rpartition(":")
    if file.endswith(".py"):
        return _own_method(Path(file), wanted)
    if name not in METHODS:
        raise UserError(f"no method is called {name!r}; there are {', '.join(METHODS)}, and one's own as FILE.py:CLASS")
    return METHODS[name]


def meaning_of(method: type[Method], settings: Settings) -> str:
    """A digest of what the settings stand for, and of the user's file where the method comes from one."""
    meaning = method.meaning(settings)
    return digest([meaning, method.source] if method.source else meaning)


@cache  # so that a process knows one version of it, whatever happens to the file
def _own_method(path: Path, wanted: str) -> type[Method]:
    """A class in a file that the user names on the command line: it is run, like any program of theirs."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; FILE.py:CLASS names a class in a file of your own")
    contents = path.read_bytes()  # what is run is what the digest is of; an import might take an older compiled file
    module = ModuleType(f"own method {path}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where data classes look for their types
    try:
        exec(compile(contents, path, "exec"), module.__dict__)
    except Exception as error:
        raise UserError(f"{path}: can't be run ({type(error).__name__}: {error})") from error
    method = getattr(module, wanted, None)
    if not (isinstance(method, type) and issubclass(method, Method) and method.__module__ == module.__name__):
        raise UserError(f"{path}: defines no method {wanted!r}, a class made from igd.benchmark.method.Method")
    method.source = hashlib.sha256(contents).hexdigest()
    return method
