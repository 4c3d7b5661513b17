"""Whether a CycloneDX file lists every package of requirements.lock, in its version, and torch.

python packaging/check_sbom.py build/sbom.json requirements.lock
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def main(sbom: Path, lock: Path) -> int:
    listed = components(json.loads(sbom.read_text(encoding="utf-8")))
    wrong = differences(listed, lock.read_text(encoding="utf-8"))
    for line in wrong:
        print(f"{sbom}: {line}", file=sys.stderr)
    if not wrong:
        print(f"{sbom}: {len(listed)} components")
    return 1 if wrong else 0


def components(sbom: dict[str, object]) -> dict[str, str]:
    """Versions by name, as pip compares names."""
    found = sbom["components"]
    assert isinstance(found, list)
    return {_canonical(each["name"]): each["version"] for each in found}


def differences(listed: dict[str, str], lock: str) -> list[str]:
    """What the lock file has and the list has not."""
    pinned = {
        _canonical(name): version
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)
    }
    wrong = [
        f"{name} {version} is missing; there is {listed.get(name)}"
        for name, version in pinned.items()
        if listed.get(name) != version
    ]
    return wrong + ([] if "torch" in listed else ["torch is missing"])


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:3])))
