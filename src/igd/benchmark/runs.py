"""A run: one method on one class with one seed, and the key that it is known by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from igd.benchmark.protocols import Protocol
from igd.version import __version__


@dataclass(frozen=True)
class Run:
    """All that decides a result; two runs with the same key are the same measurement."""

    data: str
    copy: str  # fingerprint of the data's files
    normal: str  # the class that is normal
    method: str
    settings: dict[str, Any]  # that the method obeys, as asked for
    meaning: str  # digest of what the settings' names stand for: a recipe that changes makes another run
    seed: int
    protocol: Protocol = field(default_factory=Protocol)
    made_by: str = f"igd {__version__}"

    @property
    def key(self) -> str:
        return digest(asdict(self))

    @property
    def described(self) -> str:
        """For people: what is being done."""
        extra = "" if self.protocol == Protocol() else f", {self.protocol.described}"
        return f"{self.data} {self.normal}, {self.method}, seed {self.seed}{extra}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Run:
        return cls(**{**stored, "protocol": Protocol(**stored["protocol"])})


def digest(described: Any) -> str:
    """A short name for anything that JSON can say, the same in every process and on every machine."""
    canonical = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
