"""`igd benchmark` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from igd.benchmark.paper import paper_tables
from igd.benchmark.run import Protocol, Run
from igd.benchmark.run_store import RunStore
from igd.cli import main

QUICK = ["--pretrain", "scratch", "--steps", "3", "--width", "4", "--quiet"]


def run_mnist(digits: Path, store: str, *flags: str) -> list[str]:
    return ["benchmark", "run", "mnist", "--data", str(digits), "--store", store, *flags]


def test_run_show_export(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "results.sqlite")
    command = run_mnist(digits, store, "--classes", "0", "--methods", "ocsvm", "igd", *QUICK)
    command += ["--feature-cache", str(tmp_path / "features")]
    assert main([*command, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 runs, 0 done"
    assert not Path(store).exists()

    assert main(command) == 0
    assert "2 of 2 runs done, 2 of them now" in capsys.readouterr().out
    assert main([*command, "--dry-run", "--json"]) == 0
    assert [json.loads(line)["done"] for line in capsys.readouterr().out.splitlines()] == [
        True,
        True,
    ]

    assert main(["benchmark", "show", store]) == 0
    shown = capsys.readouterr().out
    assert "| normal class | igd, fast, scratch, steps 3, width 4 | ocsvm |" in shown
    assert "ocsvm: not the published test set (20 of 10,000 images)." in shown
    page = tmp_path / "page.html"
    figures = ["--figures", str(tmp_path / "figures")]
    assert main(["benchmark", "show", store, "--format", "html", "-o", str(page), *figures]) == 0
    assert "<table>" in page.read_text()
    assert capsys.readouterr().out == f"{page}: 2 runs\n"
    assert main(["benchmark", "export", store, "-o", str(tmp_path / "mnist.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2
    (kept,) = json.loads((tmp_path / "mnist.json").read_text())["commands"]
    assert kept.startswith(
        "igd benchmark run mnist --data mnist.npz --classes 0 --methods ocsvm igd --seeds 0 "
        "--recipe fast"
    )
    assert "--feature-cache features" in kept
    assert str(tmp_path) not in kept


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A store with figure 1's runs on one class."""
    store = RunStore(tmp_path / "small.sqlite", create=True)
    for share in (0.2, 0.6):
        run = Run("mnist", "copy", "0", "igd", {}, "m", 0, Protocol(share))
        images = {"training": 1, "normal": 1000, "anomalous": 9000}
        result = {
            "metrics": {"image_auroc": share},
            "images": images,
            "protocols": [],
            "seconds": {"training": 1},
        }
        store.add(run, result)
    return store.path


def test_show_says_what_it_wrote(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, figures = tmp_path / "page.md", tmp_path / "figures"
    assert main(["benchmark", "show", str(small)]) == 0
    tables = capsys.readouterr().out
    asked = ["benchmark", "show", str(small), "--figures", str(figures)]
    assert main(asked) == 0
    assert capsys.readouterr().out == tables  # which may be piped into a file
    assert main([*asked, "-o", str(page)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{page}: 2 runs"
    assert second.startswith(f"{figures / 'mnist-small.svg'}: mnist: mean AUC over classes")
    assert page.read_text() == tables
    assert main([*asked, "-o", str(page), "--json"]) == 0
    assert capsys.readouterr().out == ""


def test_show_says_why_there_is_no_figure(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = RunStore(small)
    with store.database:
        store.database.execute("delete from run where rowid = 1")
    assert main(["benchmark", "show", str(small), "--figures", str(tmp_path / "figures")]) == 0
    assert (
        "figures: no figure; they need runs of igd or dsvdd under :small or :contaminated"
        in capsys.readouterr().err
    )


def test_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "paper"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(
        paper_tables()
    )
    assert main(["benchmark", "paper", "tab:mnist-auc", "--format", "csv"]) == 0
    assert "IGD, ImageNet,mean,0.9927" in capsys.readouterr().out.replace('"', "")
    assert main(["benchmark", "paper", "medical", "--json"]) == 0
    figures = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"hyper-kvasir", "lag"} == {figure["data"] for figure in figures}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "imagenet"], "no data set is called 'imagenet'; there are mnist"),
        (["run", "mnist:huge"], "no variant of mnist is called 'huge'"),
        (
            ["run", "mnist", "--data", "absent.npz"],
            "absent.npz: no such file or folder; --data names the .npz file of mnist",
        ),
        (
            ["run", "mvtec", "--data", "absent"],
            "absent: no such folder; --data names the folder with the categories",
        ),
        (["show", "absent.sqlite"], "absent.sqlite: no such file; make it with: igd benchmark run"),
        (
            ["show", "absent.json"],
            "absent.json: no such file; make it with: igd benchmark export STORE -o absent.json",
        ),
        (["paper", "table 7"], "the paper has no table called 'table 7'"),
    ],
)
def test_mistakes(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("igd: error: ")
    assert says in captured.err
    assert list(tmp_path.iterdir()) == []


def test_mistakes_about_the_runs(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = run_mnist(digits, str(tmp_path / "a.sqlite"))
    for words, says in (
        (["--classes", "12"], "mnist has no class '12'"),
        (["--methods", "magic"], "no method is called 'magic'"),
        (["--seeds", "-3"], "seed is -3; it must lie between 0 and"),
        (["--recipe", "none"], "no recipe is called 'none'"),
        (["--engine", "ray", "--jobs", "2"], "--jobs is for this machine"),
        (["--jobs", "0"], "jobs is 0; at least one process must do the work"),
    ):
        assert main([*command, *words]) == 2
        assert says in capsys.readouterr().err


def test_tables_need_no_pytorch() -> None:
    code = "import sys, igd.benchmark.comparison; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_store_without_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunStore(tmp_path / "empty.sqlite", create=True)
    assert main(["benchmark", "show", str(tmp_path / "empty.sqlite")]) == 2
    assert "no run has a result yet (0 failed)" in capsys.readouterr().err
