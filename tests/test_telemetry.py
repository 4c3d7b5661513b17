"""Nothing is reported to anyone: no file in the user's folders, no name looked up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import stripes, write_images

pytestmark = pytest.mark.xdist_group("telemetry")

SECONDS = 12  # ONNX Runtime looks its collector up ten seconds after it was imported
STAY = f"import time; time.sleep({SECONDS})"
ENTRANCES = {
    "library": f"from igd import IGD; import onnxruntime; {STAY}",
    "runtime": (
        "import sys; sys.modules['torch'] = None; "
        f"from igd.inference.runtime import Runtime; {STAY}"
    ),
    "server": f"import igd.deploy.server.lifecycle, igd.inference.runtime; {STAY}",
    "benchmark": (
        "from igd.benchmark.grid import _context; "
        "p = _context().Process("
        "target=exec, args=('import onnxruntime, time; time.sleep(12)',)); p.start(); p.join()"
    ),
}


def alone(code: list[str], folder: Path) -> tuple[list[str], str]:
    """Run a program in a network of its own; the files it left at home, and its system calls."""
    for tool in ("unshare", "strace"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on this machine")
    traced = ["unshare", "--net", "strace", "-f", "--seccomp-bpf", "-qq"]
    traced += ["-e", "trace=connect,sendto,sendmmsg"]
    if subprocess.run([*traced[:2], "true"], capture_output=True).returncode:
        pytest.skip("only root may make a network namespace")
    home, trace = folder / "home", folder / "trace"
    home.mkdir()
    kept = ("PATH", "PYTHONPATH", "OMP_NUM_THREADS", "LANG")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    ran = subprocess.run(
        [*traced, "-o", str(trace), sys.executable, *code],
        env={**environment, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    return [str(path) for path in home.rglob("*")], trace.read_text()


def reached(trace: str) -> list[str]:
    """Whom a program asked beyond its own machine."""
    return re.findall(r"sa_family=AF_INET6?,.*", trace)


TRAINS = (
    "from igd.cli import main; "
    "assert main(['train', '../good', '-o', 'parts.igd', '--quiet']) == 0; "
    "assert main(['predict', 'parts.igd', '../good', '--out', 'out', '--quiet']) == 0; "
    f"{STAY}"
)
PROGRAMS = {
    "control": f"import onnxruntime; {STAY}",
    "training and predicting": TRAINS,
    **ENTRANCES,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], str]]:
    """Every program at once, since most of their time is waiting for what must not come."""
    place = tmp_path_factory.mktemp("telemetry")
    write_images(place / "good", stripes(20, 64))
    folders = [place / str(number) for number in range(len(PROGRAMS))]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(PROGRAMS)) as pool:
        codes = (["-c", code] for code in PROGRAMS.values())
        return dict(zip(PROGRAMS, pool.map(alone, codes, folders), strict=True))


def test_the_test_would_notice(runs: dict[str, tuple[list[str], str]]) -> None:
    left, trace = runs["control"]
    if not left:
        pytest.skip("this ONNX Runtime reports nothing")
    assert reached(trace)


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "control"])
def test_no_file_and_no_look_up(program: str, runs: dict[str, tuple[list[str], str]]) -> None:
    left, trace = runs[program]
    assert left == []
    assert reached(trace) == []
