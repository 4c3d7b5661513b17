"""requirements.lock from pip's own report: versions and SHA-256 of the files that were tested.

make lock runs pip over constraints.txt without installing anything, and this on its report:

python packaging/lock.py build/report.json requirements.lock

The file holds no address: whoever installs chooses where from, and the hashes say whether what
comes is what was tested.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

OURS = "igd-anomaly"
# Each machine has its own build of it, and builds differ in their packages and hashes.
LEFT_OUT = "torch"

HEAD = """# The packages that the README installs, with the SHA-256 of the files that were tested:
# {platform}, CPython {python}. Made from constraints.txt by: make lock
#
#   pip install torch=={torch}                 # the build for your machine; its hash is not listed
#   pip install --no-deps --require-hashes -r requirements.lock
#   pip install --no-deps .
#
# torch is left out, because its builds (CPU, CUDA) have one version and different files. Files for
# other platforms have other hashes: run make lock there. Building igd from a checkout fetches
# hatchling, which is not listed; a wheel of igd needs nothing else.
"""


def main(report: Path, target: Path) -> None:
    target.write_text(lock(json.loads(report.read_text(encoding="utf-8"))), encoding="utf-8")


def lock(report: dict[str, Any]) -> str:
    """The lock file's text; what has no hash is an error."""
    found = {each["metadata"]["name"].lower(): each for each in report["install"]}
    found.pop(OURS, None)
    torch = found.pop(LEFT_OUT)["metadata"]["version"].partition("+")[0]
    lines = []
    for name in sorted(found, key=lambda each: each.replace("_", "-")):
        version = found[name]["metadata"]["version"]
        digest = found[name]["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{digest}\n")
    head = HEAD.format(
        platform=f"{platform.system()} {platform.machine()}",
        python=report["environment"]["python_version"],
        torch=torch,
    )
    return head + "".join(lines)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
