"""A process that has scored may be forked: the child scores what its parent scored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from igd import IGD
from igd.backbones.graph import FrozenGraph

DEADLINE = 120  # seconds; a child that waits for threads ends by its alarm before that
PROGRAM = """
import os, signal, sys
import numpy as np, torch
from igd import IGD
from igd.backbones.graph import FrozenGraph

assert torch.get_num_threads() == 2
detector, graph = IGD.load(sys.argv[1]), FrozenGraph(torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3)))
image, large = np.tile(np.arange(0, 256, 8, np.uint8), (32, 1)), torch.ones(4, 3, 256, 256)

def scored():
    return detector.predict(image).score, float(graph(large)[0].sum())

before = scored()
child = os.fork()
if child == 0:
    signal.alarm(100)
    same = np.allclose(scored(), before, rtol=1e-5)  # sums of one thread and of two
    sys.exit(0 if same and torch.get_num_threads() == 1 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert scored() == before and torch.get_num_threads() == 2
"""


def test_a_closed_session_opens_again() -> None:
    graph, image = (
        FrozenGraph(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))),
        torch.ones(1, 3, 8, 8),
    )
    (before,) = graph(image)
    first = graph.session.opened
    graph.session.close()
    (after,) = graph(image)
    assert graph.session.opened is not first
    assert after.equal(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_scores_in_a_fork(fitted: IGD, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.igd")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "model.igd")],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        timeout=DEADLINE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
