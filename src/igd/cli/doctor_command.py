"""`igd doctor`: what is installed here, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from igd.cli.common import DONE, FAILED, add_command
from igd.cpu import WITHOUT_MATRIX_UNITS, cores, multiplies_bfloat16
from igd.version import __version__

DISTRIBUTION, RUNTIME = "igd-anomaly", "igd-anomaly-runtime"  # the second without PyTorch
# And a module of each part.
EXTRAS = {
    "export": ("onnxscript",),
    "ray": ("ray", "pyarrow", "pandas"),
    "serve": ("fastapi", "multipart", "prometheus_client", "uvicorn"),
}
ENOUGH_DISK = 2 << 30  # bytes; a feature cache of a few thousand images


class Finding(NamedTuple):
    """One thing looked at: what was found and, where something is wrong, the way out."""

    name: str
    found: str
    advice: str = ""
    needed: bool = False  # nothing works without it


def add(commands: Any) -> None:
    add_command(
        commands, "doctor", run, "say what is installed here, and what is missing", "igd doctor"
    )


def run(options: argparse.Namespace) -> int:
    findings = list(examine())
    width = max(len(finding.name) for finding in findings) + 2
    for finding in findings:
        if options.json:
            print(json.dumps(finding._asdict()))
        else:
            print(f"{'!' if finding.advice else ' '} {finding.name:<{width}}{finding.found}")
            if finding.advice:
                print(f"  {'':<{width}}{finding.advice}")
    return FAILED if any(finding.advice and finding.needed for finding in findings) else DONE


def examine() -> Iterator[Finding]:
    """Everything that a question about a failure begins with."""
    yield Finding("igd", __version__)
    yield Finding(
        "python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    installed = _installed()
    yield from _requirements(installed)
    for extra, modules in EXTRAS.items():
        if installed == RUNTIME and extra == "export":
            continue
        missing = [module for module in modules if find_spec(module) is None]
        package = f"{installed or DISTRIBUTION}[{extra}]"
        use = "--engine ray" if extra == "ray" else f"igd {extra}"
        advice = f"for {use}: pip install '{package}'" if missing else ""
        yield Finding(
            f"extra {extra}", f"without {', '.join(missing)}" if missing else "complete", advice
        )
    limited = os.environ.get("OMP_NUM_THREADS")
    yield Finding("cores", str(cores()) + (f", OMP_NUM_THREADS={limited}" if limited else ""))
    yield from _weights()
    yield from _bfloat16()
    free = shutil.disk_usage(Path.cwd()).free
    scarce = "feature caches and anomaly maps need room" if free < ENOUGH_DISK else ""
    yield Finding("disk", f"{free / 2**30:.1f} GB free in {Path.cwd()}", scarce)


def _installed() -> str | None:
    """The distribution that igd was installed from; None where it runs from a folder."""
    for name in (DISTRIBUTION, RUNTIME):
        try:
            version(name)
        except PackageNotFoundError:
            continue
        return name
    return None


def _requirements(installed: str | None) -> Iterator[Finding]:
    """The packages that the core needs, by the project's own list."""
    if installed is None:
        yield Finding(
            "packages",
            "unknown",
            "igd runs from a folder that was never installed: pip install .",
            needed=True,
        )
        return
    listed = [line for line in requires(installed) or [] if "extra ==" not in line]
    for name in sorted(line.split(">")[0].strip() for line in listed):
        try:
            yield Finding(name, version(name))
        except PackageNotFoundError:
            yield Finding(name, "not installed", f"pip install {name}", needed=True)


def _weights() -> Iterator[Finding]:
    if find_spec("torch") is None:
        return
    from igd.backbones.architectures import DEFAULT
    from igd.backbones.weights import find_weights, way_to_get

    path = find_weights(DEFAULT)
    advice = "" if path else f"the default recipe needs them: {way_to_get(DEFAULT)}"
    yield Finding("ImageNet weights", f"{DEFAULT}, {path}" if path else "none", advice)


def _bfloat16() -> Iterator[Finding]:
    """What `--precision bf16-mixed` needs."""
    if find_spec("torch") is None:
        return
    works = multiplies_bfloat16()
    if works is False:
        advice = f"set {WITHOUT_MATRIX_UNITS} in the environment, or leave --precision out"
        yield Finding("bfloat16", "ends the process: matrix units (AMX) are not set up", advice)
    else:
        found = "can be used (--precision bf16-mixed)" if works else "could not be tried"
        yield Finding("bfloat16", found)
