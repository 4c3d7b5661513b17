"""How long an installation takes and how much room it needs: the core, with its extras, and the
runtime without PyTorch.

python benchmarks/installation.py --out docs/results/installation.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conditions import conditions

from igd.files import write_text

PROJECT = Path(__file__).parent.parent
INSTALLED = {  # what pip installs, and what must then work
    "core": (str(PROJECT), "from igd import IGD"),
    "core, export and serve": (
        f"{PROJECT}[export,serve]",
        "from igd import IGD; import fastapi, onnxscript",
    ),
    "runtime without PyTorch": (
        str(PROJECT / "packaging" / "runtime"),
        "from igd import Runtime; import sys; assert 'torch' not in sys.modules",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    summary = {
        "what": "pip install into an empty environment: wall-clock seconds and megabytes "
        "on disk, pip itself left out",
        "command": "python benchmarks/installation.py",
        **conditions("none", 0),
        "installations": {name: installed(*each) for name, each in INSTALLED.items()},
    }
    print(json.dumps(summary, indent=2))
    if options.out:
        write_text(options.out, json.dumps(summary, indent=2) + "\n")


def installed(package: str, proof: str) -> dict[str, float]:
    """Install into an environment of its own, see that it works, and weigh it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python, before = str(Path(folder) / "bin/python"), megabytes(Path(folder))
        started = time.perf_counter()
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(PROJECT / "constraints.txt"), package], check=True)
        seconds = time.perf_counter() - started
        weight = megabytes(Path(folder)) - before
        subprocess.run([python, "-c", proof], check=True, cwd=folder)
    return {"seconds": round(seconds, 1), "megabytes": round(weight)}


def megabytes(folder: Path) -> float:
    """What the files of a folder take on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


if __name__ == "__main__":
    main()
