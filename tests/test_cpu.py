"""A machine on which bfloat16 ends the process is found out by another process, and said."""

import re
from collections.abc import Iterator

import pytest
import torch

from igd import IGD
from igd.cli import main
from igd.cpu import multiplies_bfloat16, require_bfloat16
from igd.errors import UserError
from igd.pretraining.rotation import Rotation, learn_rotation
from igd.progress import Progress
from igd.training.distributed import make_fabric

ILLEGAL_INSTRUCTION = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    multiplies_bfloat16.cache_clear()
    yield
    multiplies_bfloat16.cache_clear()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igd.cpu.PRODUCT", ILLEGAL_INSTRUCTION)


def test_one_that_multiplies_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    assert multiplies_bfloat16()
    require_bfloat16("bf16-mixed")


def test_one_that_can_not_be_tried_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "no-such-python")
    assert multiplies_bfloat16() is None
    require_bfloat16("bf16-mixed")


def test_one_whose_trial_fails_otherwise_is_let_through(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("igd.cpu.PRODUCT", "raise SystemExit(3)")
    assert multiplies_bfloat16() is None
    assert main(["doctor"]) == 0
    assert re.search("bfloat16 +could not be tried", capsys.readouterr().out)


@pytest.mark.usefixtures("broken")
def test_one_that_ends_the_process_is_refused_with_the_way_out() -> None:
    with pytest.raises(UserError, match=r"matrix units \(AMX\).*leave the precision at 32-true"):
        require_bfloat16("bf16-mixed")
    require_bfloat16("32-true")
    images = torch.randint(0, 256, (12, 32, 32), dtype=torch.uint8)
    for device in ("cpu", "auto"):
        with pytest.raises(UserError, match="matrix units"):
            IGD(pretrain="scratch", precision="bf16-mixed", device=device).fit(images.numpy())
    with pytest.raises(UserError, match="matrix units"):
        make_fabric("cpu", "bf16-mixed")
    with pytest.raises(UserError, match="matrix units"):
        learn_rotation(images[:, None], Rotation(precision="bf16-mixed"), Progress())


@pytest.mark.usefixtures("broken")
def test_doctor_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert re.search("! bfloat16 +ends the process", capsys.readouterr().out)
