"""`igd studio` before it serves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import os, sys
from igd.cli import main
code = main(["studio", sys.argv[1]])
print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
sys.exit(code)
"""


@pytest.mark.parametrize("own", [{}, {"OMP_WAIT_POLICY": "ACTIVE"}])
def test_threads_of_a_studio_sleep_while_they_wait(own: dict[str, str], tmp_path: Path) -> None:
    """Said before torch is imported, which reads it once; a user's own word counts."""
    (tmp_path / "file").touch()  # no folder, so that nothing is served
    base = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    told = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "file")],
        env=base | own,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 2, told.stderr
    assert told.stdout.split() == [own.get("OMP_WAIT_POLICY", "PASSIVE"), "False"]
