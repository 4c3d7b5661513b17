"""Every program of examples/ runs, and says what it should."""

import ast
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from igd.data.demo import make_demo

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("_own_names")]

Run = Callable[..., str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs work, one after another, and leave what the next one takes."""
    folder = tmp_path_factory.mktemp("examples")
    make_demo(folder / "igd-examples" / "bricks")
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a program as `python examples/NAME ARGUMENTS` does; gives what it printed."""
    monkeypatch.chdir(place)

    def run_program(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_program


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60
    assert f"python examples/{path.name}" in (ast.get_docstring(ast.parse(source)) or "")
    assert f'run("{path.name}"' in Path(__file__).read_text(encoding="utf-8"), "no test runs it"


def test_train_export_and_serve(run: Run, place: Path) -> None:
    said = run("train_from_folder.py", "igd-examples/bricks")
    verdicts = re.findall(r"^(ANOMALOUS|normal) .* (good|crack|stain|hole) ", said, re.MULTILINE)
    assert {kind for _, kind in verdicts} == {"good", "crack", "stain", "hole"}
    assert [verdict == "ANOMALOUS" for verdict, _ in verdicts] == [
        kind != "good" for _, kind in verdicts
    ]
    assert (place / "igd-examples" / "parts.igd").stat().st_size > 100_000

    said = run("export_without_torch.py", "igd-examples/parts.igd")
    with_torch, without = (
        re.findall(rf"^{way} PyTorch: +(.*)", said, re.MULTILINE) for way in ("with", "without")
    )
    assert len(with_torch) == 8
    assert with_torch == without
    assert "0 verdicts differ" in said

    said = run("call_the_server.py", "igd-examples/parts.onnx")
    assert "good/000.png: anomalous: False" in said
    assert re.search(r"hole/000.png: anomalous: True, p 0.0\d+ \d+x\d+ at \(\d+, \d+\)", said)
    assert "ended with 0" in said


def test_score_array(run: Run) -> None:
    said = run("score_array.py")
    normal, patched = map(
        float, re.search(r"decision_function \[ *(\S+) +(\S+?) *\]", said).groups()
    )
    assert normal > 0 > patched
    row, column = map(int, re.search(r"row (\d+), column (\d+); anomalous: True", said).groups())
    assert 192 // 3 <= row < 192 // 2
    assert 192 // 3 <= column < 192 // 2


def test_custom_objective(run: Run) -> None:
    said = run("custom_objective.py", "igd-examples/bricks")
    found = re.findall(r"^(\S+) +rho (\S+)  image AUROC (\S+)", said, re.MULTILINE)
    assert [(name, rho) for name, rho, _ in found] == [("igd", "0.15"), ("igd-half-mae", "0.50")]
    assert all(0.5 < float(auroc) <= 1 for *_, auroc in found)


def test_ablation(run: Run) -> None:
    said = run("ablation.py", "igd-examples/bricks")
    found = re.findall(r"^(\S+) +(\S+) ± (\S+)$", said, re.MULTILINE)
    assert [name for name, *_ in found] == ["mse", "rec", "rec+gac", "igd"]
    assert all(0 <= float(mean) <= 1 and float(spread) >= 0 for _, mean, spread in found)
    assert len({mean for _, mean, _ in found}) > 1  # the terms make a difference


def test_audit(run: Run, place: Path) -> None:
    said = run("audit.py", "igd-examples/bricks")
    found, planted = map(
        int,
        re.search(
            r"^(\d) of (\d) planted defects are among the first", said, re.MULTILINE
        ).groups(),
    )
    assert found > planted / 2
    assert (place / "igd-examples" / "audit.html").stat().st_size > 10_000
