"""anomalib beside igd: PaDiM, PatchCore and MH-PatchCore on the same sets, by the same metrics.

Makes an environment of its own (anomalib brings a PyTorch of 6 GB), lets `igd benchmark` run there
with the methods of anomalib_methods.py, the smallest set first, and writes what is done as JSON.
After Ctrl-C or a crash the same command goes on; `tables.py` sets the figures beside ours. To
measure with a newer igd's metrics, delete the environment and the store (~/.cache/igd-peers).

PatchCore1 keeps one patch in a hundred; PatchCore, one in ten, is anomalib's default and takes
hours on a CPU.

python benchmarks/beside_anomalib.py MVTEC FIELD --weights resnet18.safetensors
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
METHODS = "benchmarks/anomalib_methods.py"  # as a run records it, from ROOT
ANOMALIB = "anomalib==2.7.*"
PLACE = Path("~/.cache/igd-peers")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# Large tensors are freed and made anew for every image; a third of the time went to the system.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 33)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flag = parser.add_argument
    flag("folders", type=Path, nargs="+", help="folders of sets in MVTec's layout")
    flag("--weights", type=Path, required=True, help="ResNet18, conv1 to layer3 (.safetensors)")
    flag("--methods", nargs="+", default=["PatchCore1", "MHPatchCore", "PaDiM"])
    flag("--seeds", nargs="+", default=["0"])
    flag("--jobs", default="1", help="processes of one thread each (default: 1)")
    flag("--place", type=Path, default=PLACE, help="environment and store (default: %(default)s)")
    flag("--out", type=Path, default=ROOT / "docs" / "results" / "field-anomalib.json")
    options = parser.parse_args()
    place, weights = options.place.expanduser().resolve(), options.weights.resolve()
    if not weights.is_file():
        parser.error(f"{weights}: no such file; --weights names the weights of a ResNet18")
    sets = find_sets(options.folders)
    if not sets:
        parser.error(f"{options.folders[0]}: no folder in it has train/good; name a folder of sets")
    igd = [str(environment(place)), "-m", "igd.cli", "benchmark"]
    store = str(place / "peers.sqlite")
    asked = ["--jobs", options.jobs, "--seeds", *options.seeds, "--classes", *by_size(sets)]
    methods = ["--methods", *(f"{METHODS}:{name}" for name in options.methods)]
    data = ["--data", str(linked(sets, place / "sets"))]
    settings = {**ONE_THREAD, **KEEP_MEMORY, "IGD_PEER_WEIGHTS": str(weights)}
    ended = subprocess.run(
        [*igd, "run", "field", *data, "--store", store, *asked, *methods],
        cwd=ROOT,
        env={**os.environ, **settings},
        check=False,
    )
    subprocess.run([*igd, "export", store, "-o", str(options.out.resolve())], check=False)
    return ended.returncode


def environment(place: Path) -> Path:
    """The Python of an environment with anomalib and igd as it was then; made where there is
    none.
    """
    python = place / "env" / "bin" / "python"
    if not (place / "ready").is_file():
        print(f"{place}: an environment with anomalib, 6 GB, in some minutes", file=sys.stderr)
        venv.create(place / "env", with_pip=True)
        # A copy of igd: were it the files of ROOT, any change of them would begin all runs anew.
        wanted = [ANOMALIB, str(ROOT)]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        (place / "ready").touch()
    return python


def find_sets(folders: Sequence[Path]) -> dict[str, Path]:
    """The sets of some folders by name: whatever has train/good."""
    return {
        found.parents[1].name: found.parents[1].resolve()
        for folder in folders
        for found in sorted(folder.glob("*/train/good"))
    }


def by_size(sets: dict[str, Path]) -> list[str]:
    """Names of sets, those with the fewest training images first."""
    return sorted(sets, key=lambda name: len(list((sets[name] / "train" / "good").iterdir())))


def linked(sets: dict[str, Path], folder: Path) -> Path:
    """One folder that has all sets, so that one command runs them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in sets.items():
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    return folder


if __name__ == "__main__":
    sys.exit(main())
