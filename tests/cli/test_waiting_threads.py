"""What every command says to threads before it imports torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from igd.cpu import TURN

RUN = """
import os, sys
from igd.cli import main
code = main(sys.argv[1:])
print(os.environ.get("GOMP_SPINCOUNT"), "torch" in sys.modules, sys.getswitchinterval())
sys.exit(code)
"""


@pytest.mark.parametrize("command", [["studio"], ["train", "-o", "parts.igd"], ["serve"]])
@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({}, "1000"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "None"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
    ],
)
def test_threads_sleep_while_they_wait(
    command: list[str], own: dict[str, str], said: str, tmp_path: Path
) -> None:
    """Said before torch is imported, which reads it once; a user's own word counts."""
    (tmp_path / "file").touch()  # no folder, no image and no model, so that the command ends
    words = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    base = {name: value for name, value in os.environ.items() if name not in words}
    told = subprocess.run(
        [sys.executable, "-c", RUN, *command, str(tmp_path / "file")],
        env=base | own,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert told.returncode == 2, told.stderr
    spins, _, turn = told.stdout.split()
    assert (spins, float(turn)) == (said, TURN)
    if command == ["studio"]:  # refuses a file before it needs torch
        assert told.stdout.split()[1] == "False"
