"""Two processes make what one makes on the same batches; one that is killed ends all, and the run
goes on in another number of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import stripes, write_images
from safetensors.torch import load_file
from torch import Tensor

from igd import IGD
from igd.cli import main
from igd.errors import UserError
from igd.training.distributed import launch

pytestmark = [
    pytest.mark.xdist_group("distributed"),
    pytest.mark.skipif(sys.platform != "linux", reason="gloo on the loopback interface"),
]

# Adam turns the rounding of a gradient near 0 into a step of the learning rate: in single precision
# two runs part within ten steps, however their batches are divided. In double precision they don't.
PROGRAM = """
import os, signal, sys, warnings
import numpy as np, torch
from safetensors.torch import save_file
from igd import IGD
from igd.files import checkpoint_file
from igd.training import fit, train_autoencoders
from igd.training.distributed import is_launched, make_fabric

images, target, how = sys.argv[1:]
torch.set_default_dtype(torch.float64)
warnings.simplefilter("ignore")
fit.checked = lambda given: given  # no user may ask for double precision
fabric = make_fabric("cpu", "64-true") if is_launched() else None
checkpoint_file.SECONDS = 0.0  # one after every step
agreed, steps = train_autoencoders.any_of, 0

def dying(fabric, wish):
    global steps
    steps += 1
    if how == "dying" and steps == 5 and fabric.global_rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return agreed(fabric, wish)

train_autoencoders.any_of = dying
options = dict(pretrain="scratch", scales=("global",), steps=10, width=4, batch_size=7)
detector = IGD(image_size=32, precision="64-true", **options)
detector.fit(np.load(images), checkpoint=target + ".checkpoint", resume=how == "resuming",
             fabric=fabric)
if fabric is None or fabric.global_rank == 0:
    (scale,) = detector.fitted_.scales
    scores = torch.as_tensor(detector.calibration_.scores)
    learnt = {name: value.contiguous() for name, value in scale.tensors().items()}
    save_file({**learnt, "scores": scores}, target)
"""


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many images that batches and shares of them are not all of one size."""
    folder = tmp_path_factory.mktemp("plant")
    np.save(folder / "images.npy", stripes(41))
    (folder / "program.py").write_text(PROGRAM)
    return folder


def trained(folder: Path, name: str, how: str = "alone", devices: int = 1) -> dict[str, Tensor]:
    """What the program makes in so many processes."""
    target = folder / name
    arguments = [str(folder / "program.py"), str(folder / "images.npy"), str(target), how]
    if devices == 1:
        subprocess.run([sys.executable, *arguments], check=True)
    else:
        assert launch(arguments, devices, nodes=1) == 0
    return load_file(target)


@pytest.fixture(scope="module")
def alone(plant: Path) -> dict[str, Tensor]:
    return trained(plant, "alone")


@pytest.fixture(autouse=True)
def _one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def check_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=1e-5, atol=1e-5, msg=name)


def test_two_processes_train_as_one_does(alone: dict[str, Tensor], plant: Path) -> None:
    """E-steps, auto-encoder, critic, and what is drawn for each sample."""
    assert float(alone["history"].diff(dim=0).abs().max()) > 0.01  # something was learnt
    check_same(alone, trained(plant, "two", devices=2))


def test_a_killed_process_ends_all_and_one_goes_on(alone: dict[str, Tensor], plant: Path) -> None:
    with pytest.raises(RuntimeError, match=r"process 1 of 2 was killed .* --resume"):
        trained(plant, "killed", "dying", devices=2)
    assert not (plant / "killed").exists()
    assert (plant / "killed.checkpoint").exists()
    check_same(alone, trained(plant, "killed", "resuming"))


def test_two_processes_extract_what_one_extracts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of frozen features and what is learnt from them, every digit."""
    parts = write_images(tmp_path / "parts", stripes(41, side=96))
    paths = [tmp_path / "alone.igd", tmp_path / "two.igd"]
    command = ["train", str(parts), "--scales", "position", "--image-size", "96", "--quiet"]
    assert main([*command, "-o", str(paths[0])]) == 0
    assert main([*command, "-o", str(paths[1]), "--devices", "2"]) == 0
    assert capfd.readouterr().out.count("learnt from") == 2  # once by each command
    one, other = (IGD.load(path).fitted_.scales[0].tensors() for path in paths)
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=0, msg=name)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(UserError, match="MASTER_ADDR"):
        launch([], devices=1, nodes=2)
    with pytest.raises(UserError, match="at least one"):
        launch([], devices=0, nodes=1)
