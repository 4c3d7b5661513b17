"""A run: one method on one class with one seed under one protocol, and the key it is known by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from igd.version import __version__

# What a result is computed by, in the package. Printing, drawing, storing and serving are not.
RESULT_CODE = (
    *("backbones", "data", "inference", "method", "ops", "pretraining", "scales", "training"),
    *("cpu.py", "detector.py", "rng.py", "evaluation/metrics.py"),
    *(f"benchmark/{name}.py" for name in ("baselines", "benchmark_data", "methods", "trial")),
)


@dataclass(frozen=True)
class Protocol:
    """How a run's data differ from the data set's own; the defaults change nothing."""

    training_share: float = 1.0  # of the normal training images
    contamination: float = 0.0  # share of the test anomalies that move into the training set

    @property
    def described(self) -> str:
        if self.contamination:
            return f"{self.contamination:.0%} of the anomalies in training"
        return f"{self.training_share:.0%} of the training set"


def digest(described: Any) -> str:
    """A short name for anything that JSON can say, the same in every process and machine."""
    canonical = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


@cache  # what a process has imported does not change with the files
def made_by() -> str:
    """The version, and a digest of the source files that a result is computed by."""
    return f"igd {__version__}, code {code_digest(Path(__file__).parents[1])}"


def code_digest(package: Path) -> str:
    """A digest of `RESULT_CODE` in the package's folder: another one after any change there."""
    found = (path for name in RESULT_CODE for path in _python_files(package / name))
    return digest(
        [
            (path.relative_to(package).as_posix(), path.read_text(encoding="utf-8"))
            for path in sorted(found)
        ]
    )


def _python_files(place: Path) -> list[Path]:
    return [place] if place.is_file() else list(place.rglob("*.py"))


@dataclass(frozen=True)
class Run:
    """All that decides a result; two runs with the same key are the same measurement."""

    data: str
    copy: str  # fingerprint of the data's files
    normal: str  # the class that is normal
    method: str
    settings: dict[str, Any]  # those that are relevant to the method, as asked for
    config_hash: str  # of what the settings' names stand for: a changed recipe is another run
    seed: int
    protocol: Protocol = field(default_factory=Protocol)
    made_by: str = field(default_factory=made_by)

    @property
    def key(self) -> str:
        return digest(self.to_json())

    @property
    def described(self) -> str:
        """For people: what is being done."""
        extra = "" if self.protocol == Protocol() else f", {self.protocol.described}"
        return f"{self.data} {self.normal}, {self.method}, seed {self.seed}{extra}"

    def to_json(self) -> dict[str, Any]:
        """As stores and exports have it, where `config_hash` has always been `meaning`."""
        stored = asdict(self)
        config_hash = stored.pop("config_hash")
        return {**stored, "meaning": config_hash}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Run:
        known = {**stored, "config_hash": stored["meaning"]}
        del known["meaning"]
        return cls(**{**known, "protocol": Protocol(**known["protocol"])})
