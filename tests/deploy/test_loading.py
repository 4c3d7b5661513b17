"""Model files as predictors."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from igd.deploy.loading import load_predictor, named
from igd.detector import IGD
from igd.errors import UserError


def test_the_suffix_says_what_a_model_runs_in(
    model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(load_predictor(model_file), IGD)
    runtime = SimpleNamespace(load=lambda path, threads: SimpleNamespace(path=path))
    monkeypatch.setitem(sys.modules, "igd.inference.runtime", SimpleNamespace(Runtime=runtime))
    for name in ("parts.onnx", "PARTS.ONNX"):
        assert load_predictor(Path(name)).path == Path(name)


def test_serving_itself_needs_neither_pytorch_nor_scipy() -> None:
    script = (
        "import sys, igd.deploy.server.lifecycle; "
        "print({'torch', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "set()"


def test_names_are_those_of_the_files(tmp_path: Path) -> None:
    for name in ("nuts.igd", "bolts.m8.onnx"):
        (tmp_path / name).touch()
    assert list(named([tmp_path / "nuts.igd", tmp_path / "bolts.m8.onnx"])) == ["nuts", "bolts.m8"]
    with pytest.raises(UserError, match="no such model file"):
        named([tmp_path])
