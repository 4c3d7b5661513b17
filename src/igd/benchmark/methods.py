"""The methods by name."""

from __future__ import annotations

from igd.benchmark import classical, deep
from igd.benchmark.method import Method
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
    if name not in METHODS:
        raise UserError(f"no method is called {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
