"""Data sets and protocols on the command line: a model remembers what it was trained with, and is
tested on the rest.
"""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import spotted, stripes

from igd import IGD
from igd.cli import main
from igd.data.image_set import decode

QUICK = ["--quiet", "--json"]


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """Two classes: stripes with a spot (4) and without (7)."""
    train = np.concatenate([stripes(30), spotted(stripes(30, seed=1))])
    test = np.concatenate([stripes(10, seed=2), spotted(stripes(20, seed=3))])
    path = tmp_path / "shapes.npz"
    np.savez(
        path,
        x_train=train,
        y_train=np.repeat([7, 4], 30),
        x_test=test,
        y_test=np.repeat([7, 4], [10, 20]),
    )
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main([str(each) for each in arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_protocol_is_recorded_and_evaluation_follows_it(
    arrays: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "seven.igd"
    protocol = ["--normal-class", "7", "--fraction", "0.5", "--contamination", "0.1", "--seed", "3"]
    trained = run(capsys, "train", arrays, "-o", model, *protocol, *QUICK)
    assert trained["images"] == trained["calibration_images"] == 15 + 2
    steps = IGD.load(model).provenance_["protocols"]
    assert steps == trained["protocols"]
    assert [step["protocol"] for step in steps] == ["one-class", "fraction", "contamination"]
    assert len(steps[2]["moved"]) == 2

    elsewhere = tmp_path / "moved.npz"
    os.link(arrays, elsewhere)
    for data in (arrays, elsewhere):
        metrics = run(capsys, "evaluate", model, data, "--quiet", "--json")
        assert (metrics["n_normal"], metrics["n_anomalous"]) == (10, 18)
    metrics = run(
        capsys,
        "evaluate",
        model,
        arrays,
        "--normal-class",
        "7",
        "--contamination",
        "0",
        "--quiet",
        "--json",
    )
    assert (metrics["n_normal"], metrics["n_anomalous"]) == (10, 20)
    metrics = run(
        capsys, "evaluate", model, arrays, *protocol[:2], *protocol[4:], "--quiet", "--json"
    )
    assert (metrics["n_normal"], metrics["n_anomalous"]) == (10, 18)


def test_a_manifest_trains_and_tests(
    category: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["path,label,split,mask"]
    for path in sorted((category / "train" / "good").iterdir()):
        rows.append(f"{path.relative_to(category)},good,train,")
    for path in sorted((category / "test").rglob("*.png")):
        mask = f"ground_truth/spot/{path.stem}_mask.png" if path.parent.name == "spot" else ""
        rows.append(f"{path.relative_to(category)},{path.parent.name},test,{mask}")
    manifest = tmp_path / "stripes.csv"
    manifest.write_text("\n".join(rows))
    model = tmp_path / "stripes.igd"
    trained = run(capsys, "train", manifest, "--root", category, "-o", model, *QUICK)
    assert trained["images"] == trained["calibration_images"] == 60
    listed = run(capsys, "evaluate", model, manifest, "--root", category, "--quiet", "--json")
    assert listed == run(capsys, "evaluate", model, category, "--quiet", "--json")
    assert (listed["n_normal"], listed["n_anomalous"], listed["n_masks"]) == (10, 10, 10)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "has the classes 4, 7; say which one is normal (--normal-class)"),
        (["--normal-class", "5"], "no class is called '5'; there are 4, 7"),
        (["--normal-class", "7", "--fraction", "2"], "a fraction of 2 is impossible"),
        (["--normal-class", "7", "--contamination", "1"], "a contamination of 1 is impossible"),
        (["--normal-class", "7", "--contamination", "0.1", "--seed", "-1"], "seed is -1"),
        (["--root", "."], "is for the paths in a manifest"),
    ],
)
def test_what_can_not_be_trained_on(
    arrays: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], says: str
) -> None:
    assert main(["train", str(arrays), "-o", str(tmp_path / "model.igd"), *flags, *QUICK]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "model.igd").exists()


def test_what_can_not_be_tested_on(
    fitted: IGD, category: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.igd"
    fitted.save(model)
    assert main(["evaluate", str(model), str(category / "train" / "good"), "--quiet"]) == 2
    assert (
        "no labelled test images (it holds 60 train images of kind 'good')"
        in capsys.readouterr().err
    )
    assert main(["evaluate", str(model), str(category.parent), "--quiet"]) == 2
    assert "choose one: stripes" in capsys.readouterr().err


def test_pixels_in_a_file_train_the_same_model(
    arrays: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["train", arrays, "--normal-class", "7", *QUICK, "-o"]
    held = run(capsys, *command, tmp_path / "held.igd")
    cache = tmp_path / "cache"
    monkeypatch.setenv("IGD_CACHE", str(cache))
    monkeypatch.setattr("igd.training.read_images.decode", partial(decode, held=0))
    filed = run(capsys, *command, tmp_path / "filed.igd")
    assert list(cache.iterdir()) == []  # it was there: the folder was made for it
    assert filed["fingerprint"] == held["fingerprint"]
    one, other = IGD.load(tmp_path / "held.igd"), IGD.load(tmp_path / "filed.igd")
    np.testing.assert_array_equal(one.score_samples(stripes(5)), other.score_samples(stripes(5)))
    np.testing.assert_array_equal(one.calibration_.scores, other.calibration_.scores)
