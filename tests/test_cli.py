"""The command line: what it prints, what it writes, and what it says to bad input."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main

QUICK = ["--quiet"]
LONG = 5000 * "x"
SCRATCH = [
    "--steps",
    "3",
    "--width",
    "4",
    "--quiet",
    "--pretrain",
    "scratch",
]  # where features would only take time


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


def test_train_predict_evaluate(
    category: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "stripes.igd"
    assert main(["train", str(category), "-o", str(model), *QUICK, "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert (trained["images"], trained["calibration_images"], trained["measuring_images"]) == (
        60,
        60,
        0,
    )
    assert (trained["recipe"], trained["seed"], trained["backbone"]) == (
        "fast",
        0,
        "efficientnet_lite0",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["stripes.igd"]

    out = tmp_path / "results"
    assert (
        main(
            ["predict", str(model), str(category / "test"), "--out", str(out), "--json", "--quiet"]
        )
        == 0
    )
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 20
    expected = {"path", "score", "p_value", "is_anomalous", "regions", "error"}
    assert all(line.keys() == expected for line in lines)
    rows = list(csv.DictReader((out / "scores.csv").open()))
    assert [float(row["score"]) for row in rows] == [line["score"] for line in lines]
    assert len(list(out.rglob("*.png"))) == 20
    assert Image.open(out / "spot" / "003.png.png").size == (32, 32)

    report = tmp_path / "report.html"
    assert (
        main(["evaluate", str(model), str(category), "--report", str(report), "--json", "--quiet"])
        == 0
    )
    metrics = json.loads(capsys.readouterr().out)
    expected = [
        "image_auroc",
        "average_precision",
        "accuracy_at_half",
        "pixel_auroc",
        "pixel_auroc_per_image",
        "aupro",
    ]
    assert all(0 <= metrics[name] <= 1 for name in expected)
    assert (metrics["n_normal"], metrics["n_anomalous"], metrics["seed"]) == (10, 10, 0)
    assert report.exists()


def test_predict_prints_for_people(
    model: Path, category: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["predict", str(model), str(category / "test" / "good" / "000.png"), "--quiet"]) == 0
    )
    line = capsys.readouterr().out
    assert "score 0." in line
    assert "000.png" in line


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            lambda folder: [path.unlink() for path in folder.iterdir()] and folder.rmdir(),
            "no such folder",
        ),
        (lambda folder: [path.unlink() for path in folder.iterdir()], "no images found"),
        (lambda folder: [path.unlink() for path in sorted(folder.iterdir())[1:]], "too few"),
        (
            lambda folder: [path.write_text("text") for path in folder.iterdir()],
            "none of the 8 images can be read",
        ),
        (lambda folder: Image.new("RGB", (90, 40)).save(folder / "odd.png"), "different sizes"),
        (
            lambda folder: write_images(folder, stripes(8, side=6)),
            "fewer than the model can read",
        ),
    ],
)
def test_bad_training_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil, says: str
) -> None:
    folder = write_images(tmp_path / "good", stripes(8))
    spoil(folder)
    output = tmp_path / "out"
    output.mkdir()
    assert main(["train", str(folder), "-o", str(output / "model.igd"), *QUICK]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("igd: error: ")
    assert says in captured.err
    assert list(output.iterdir()) == []


def test_a_truncated_image_is_skipped_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_images(tmp_path / "good", stripes(8))
    truncated(folder / "003.png")
    (folder / "text.png").write_text("text")
    model = tmp_path / "model.igd"
    assert main(["train", str(folder), "-o", str(model), *SCRATCH, "--strict"]) == 2
    assert "003.png" in capsys.readouterr().err
    assert not model.exists()
    loud = [flag for flag in SCRATCH if flag != "--quiet"]
    assert main(["train", str(folder), "-o", str(model), *loud]) == 0
    error = capsys.readouterr().err
    assert "left out" in error
    assert "003.png" in error
    assert main(["predict", str(model), str(folder), "--json", "--quiet"]) == 1
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    damaged = [row for row in rows if row["error"]]
    assert (len(rows), [Path(row["path"]).name for row in damaged]) == (9, ["003.png", "text.png"])
    assert all(row["score"] is row["is_anomalous"] is None for row in damaged)
    assert "003.png" in captured.err
    assert main(["predict", str(model), str(folder), "--json", "--quiet", "--strict"]) == 2


@pytest.mark.parametrize("where", ["none/model.igd", "file/model.igd", "folder"])
def test_unwritable_output(tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str) -> None:
    folder = write_images(tmp_path / "good", stripes(8))
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert main(["train", str(folder), "-o", str(tmp_path / where), *QUICK]) == 2
    assert where in capsys.readouterr().err


@pytest.mark.parametrize(
    "spoil", [truncated, lambda path: path.write_text("text"), lambda path: path.unlink()]
)
def test_bad_model_file(
    model: Path, category: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, spoil
) -> None:
    spoil(model)
    for command in (
        ["predict", str(model), str(category), "--out", str(tmp_path / "out")],
        ["evaluate", str(model), str(category)],
    ):
        assert main([*command, "--quiet"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert "model.igd" in captured.err
    assert not (tmp_path / "out").exists()


def test_images_of_other_sizes_train_when_told_how(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "good", stripes(8))
    Image.fromarray(np.zeros((50, 90, 3), dtype=np.uint8)).save(folder / "odd.png")
    assert (
        main(
            [
                "train",
                str(folder),
                "-o",
                str(tmp_path / "model.igd"),
                *SCRATCH,
                "--fit",
                "letterbox",
            ]
        )
        == 0
    )


def test_usage_errors_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in (
        (["--help"], 0),
        (["train", "--help"], 0),
        (["--version"], 0),
        (["fly"], 2),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == code
    assert "igd train parts/good -o parts.igd" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["train", LONG, "-o", "parts.igd"],
        ["train", ".", "-o", LONG],
        ["predict", LONG, "."],
        ["verify", LONG, "--verbose"],
        ["studio", LONG],
        ["benchmark", "run", "mnist", "--data", LONG],
    ],
    ids=lambda command: command[0],
)
def test_a_name_that_is_too_long(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path / "good", stripes(4, 32))
    assert main(command) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("igd: error: ")
    assert "too long" in said
    assert len(said) < 200


def test_help_imports_neither_torch_nor_numpy() -> None:
    program = "import sys, igd.cli; igd.cli._parser().format_help(); "
    code = program + "sys.exit(bool({'torch', 'numpy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


INTERRUPTED = """
import os, signal, sys
from igd.cli import main
from igd.progress import LogProgress

advance = LogProgress.advance

def interrupting(log, count=1, **figures):
    advance(log, count, **figures)
    if "training" in log.doing and log.done == 3:
        os.kill(os.getpid(), signal.SIGINT)

LogProgress.advance = interrupting
sys.exit(main(sys.argv[1:]))
"""


def test_interrupt_loses_nothing(tmp_path: Path) -> None:
    """Ctrl-C in a real process, at the third of ten steps: exit code 130, a checkpoint, and
    --resume ends at the very same model.
    """
    folder = write_images(tmp_path / "good", stripes(12))
    command = ["train", str(folder), "--scales", "global", "--steps", "10", "--width", "4", "-o"]
    assert main([*command, str(tmp_path / "whole.igd")]) == 0

    model = tmp_path / "model.igd"
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *command, str(model)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert process.returncode == 130, process.stderr
    assert "--resume" in process.stderr
    assert sorted(path.name for path in tmp_path.glob("model*")) == ["model.igd.checkpoint"]

    assert main([*command, str(model), "--resume"]) == 0
    assert sorted(path.name for path in tmp_path.glob("model*")) == ["model.igd"]
    whole, resumed = IGD.load(tmp_path / "whole.igd"), IGD.load(model)
    np.testing.assert_array_equal(
        whole.score_samples(stripes(5)), resumed.score_samples(stripes(5))
    )


def test_a_full_disk_costs_nothing_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model can't be written: exit code 1, the old model is whole, and --resume ends the work
    without training again.
    """
    folder, model = write_images(tmp_path / "good", stripes(8)), tmp_path / "model.igd"
    model.write_text("the old model")
    command = ["train", str(folder), "-o", str(model), *SCRATCH]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("igd.detector.write_model", full)
        assert main(command) == 1
    assert "No space left" in capsys.readouterr().err
    assert model.read_text() == "the old model"

    def no_training(*_: object) -> None:
        raise AssertionError("a step was trained again")

    monkeypatch.setattr("igd.method.m_step.autoencoder_loss", no_training)
    assert main([*command, "--resume"]) == 0
    assert IGD.load(model).fitted_.scales
    assert not (tmp_path / "model.igd.checkpoint").exists()


def test_training_goes_on_where_a_checkpoint_can_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("igd.files.checkpoint_file.write_tensors", full)
    folder = write_images(tmp_path / "good", stripes(8))
    assert main(["train", str(folder), "-o", str(tmp_path / "model.igd"), *SCRATCH]) == 0
    assert "no checkpoint written" in capsys.readouterr().err
    assert (tmp_path / "model.igd").exists()
