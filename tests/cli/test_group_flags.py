"""`--group` and `--group-by`, wherever they are taken."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import spotted, stripes, write_images

from igd import IGD
from igd.cli import main

QUICK = ["--pretrain", "scratch", "--steps", "2", "--width", "2", "--quiet"]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Ten patients with three training images each, and six others to test on."""
    write_images(tmp_path / "train", stripes(30))
    write_images(tmp_path / "test", stripes(12, seed=1))
    write_images(tmp_path / "spot", spotted(stripes(6, seed=2)))
    rows = [
        *([f"train/{n:03d}.png", "good", "train", f"a{n // 3}"] for n in range(30)),
        *([f"test/{n:03d}.png", "good", "test", f"b{n // 2}"] for n in range(12)),
        *([f"spot/{n:03d}.png", "spot", "test", f"b{n}"] for n in range(6)),
    ]
    with (tmp_path / "scans.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "split", "patient"], *rows])
    return tmp_path / "scans.csv"


def test_train_and_evaluate_by_a_column(
    listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "model.igd")
    command = ["train", str(listed), "-o", model, "--group", "patient", *QUICK]
    assert main([*command, "--calibration", "0.3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["grouped_by"], said["groups"], said["images"]) == ("column patient", 10, 21)
    assert said["calibration_images"] == 3
    assert main(["evaluate", model, str(listed), "--group", "Patient", "--quiet", "--json"]) == 0
    grouped = json.loads(capsys.readouterr().out)
    assert grouped["n_groups"] == 6
    assert main(["evaluate", model, str(listed), "--quiet", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert "n_groups" not in plain
    assert plain["image_auroc"] == grouped["image_auroc"]
    assert plain["intervals_95"] != grouped["intervals_95"]
    assert main(["info", model]) == 0
    assert "of new groups (by column patient)" in capsys.readouterr().out


def test_an_unknown_column_is_a_users_mistake(
    listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "model.igd")
    assert main(["train", str(listed), "-o", model, "--group", "case", *QUICK]) == 2
    assert "no column is called 'case'; there are path, label" in capsys.readouterr().err
    assert main(["train", str(tmp_path / "train"), "-o", model, "--group-by", "z", *QUICK]) == 2
    assert "'z' finds a group in none of its 30 file names" in capsys.readouterr().err


def test_audit_deals_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_images(tmp_path / "parts", stripes(20))
    command = ["audit", str(folder), "--out", str(tmp_path / "out"), "--folds", "2", *QUICK]
    assert main([*command, "--group-by", r"(\d)\.png", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    folds: dict[str, set[int]] = {}
    for row in rows:
        folds.setdefault(Path(row["path"]).stem[-1], set()).add(row["fold"])
    assert len(rows) == 20
    assert all(len(each) == 1 for each in folds.values())


def test_calibrate_by_a_pattern(
    fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = tmp_path / "model.igd", write_images(tmp_path / "good", stripes(30, seed=6))
    fitted.save(model)
    command = ["calibrate", str(model), str(folder), "--group-by", r"^\d\d", "--quiet"]
    assert main([*command, "--max-false-alarms", "0.05"]) == 2
    assert "needs at least 19 calibration groups, and there are 3" in capsys.readouterr().err
    assert main([*command, "--max-false-alarms", "0.25"]) == 0
    assert "of normal images of new groups, by 3 calibration images" in capsys.readouterr().out
    assert main(["calibrate", str(model), "--max-false-alarms", "0.3", "--group", "x"]) == 2
    assert "no effect" in capsys.readouterr().err
