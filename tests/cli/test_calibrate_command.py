"""`igd calibrate`, and another rate of false alarms wherever a model is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import spotted, stripes, write_images

from igd import IGD
from igd.cli import main


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_images(tmp_path / "good", stripes(30, seed=6))


def test_new_images_and_a_new_file(
    model: Path, good: Path, fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.igd"
    command = ["calibrate", str(model), str(good), "-o", str(new), "--max-false-alarms", "0.1"]
    assert main([*command, "--quiet", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["calibration_images"], said["false_alarm_rate"]) == (30, 0.1)
    assert said["former_threshold"] == pytest.approx(fitted.threshold_)
    detector = IGD.load(new)
    assert detector.false_alarm_rate_ == detector.max_false_alarms == 0.1
    assert detector.provenance_["calibration_source"] == str(good)
    assert IGD.load(model).threshold_ == fitted.threshold_  # the other file stays
    assert main([*command[:3], "--quiet"]) == 0
    assert "scores above" in capsys.readouterr().out
    assert len(IGD.load(model).fitted_.former) == 1


def test_the_rate_alone(model: Path, fitted: IGD) -> None:
    assert main(["calibrate", str(model), "--max-false-alarms", "0.2"]) == 0
    detector = IGD.load(model)
    assert detector.max_false_alarms == detector.false_alarm_rate_ == 0.2
    assert detector.threshold_ < fitted.threshold_
    image = stripes(1, seed=9)[0]
    assert detector.predict(image).score == fitted.predict(image).score


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "nothing to calibrate with; give a folder"),
        (["--max-false-alarms", "0.001"], "needs at least 999 calibration images, and there are"),
        (["--max-false-alarms", "2"], "2 is impossible; give one between 0 and 1"),
        (["GOOD", "--max-false-alarms", "0.01"], "add good images to"),
        (["/nowhere"], "no such folder"),
        (["GOOD", "--root", "/"], "is for the paths in a manifest"),
        (["GOOD", "-o", "parts.onnx"], "name a model file, such as parts.igd"),
        (["--max-false-alarms", "0.2", "--strict"], "have no effect without images"),
        (["--max-false-alarms", "0.2", "--root", "/"], "have no effect without images"),
    ],
)
def test_what_can_not_be_promised_leaves_the_file_alone(
    arguments: list[str],
    says: str,
    model: Path,
    good: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = model.read_bytes()
    given = [str(good) if each == "GOOD" else each for each in arguments]
    assert main(["calibrate", str(model), *given, "--quiet"]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert model.read_bytes() == before


def test_an_export_is_not_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(tmp_path / "parts.onnx"), str(tmp_path)]) == 2
    assert "calibrate the .igd file" in capsys.readouterr().err


def test_predict_and_evaluate_at_another_rate(
    model: Path, category: Path, fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = write_images(tmp_path / "mixed", spotted(stripes(12, seed=8), (12, 20), 2))
    verdicts = {}
    for rate in (0.05, 0.5):
        command = ["predict", str(model), str(images), "--json", "--quiet"]
        assert main([*command, "--max-false-alarms", str(rate)]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        verdicts[rate] = rows
        assert all(row["is_anomalous"] == (row["p_value"] <= rate + 1e-12) for row in rows)
    assert [row["score"] for row in verdicts[0.05]] == [row["score"] for row in verdicts[0.5]]
    assert (
        main(
            [
                "evaluate",
                str(model),
                str(category),
                "--max-false-alarms",
                "0.5",
                "--json",
                "--quiet",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["promised_false_alarm_rate"] == 0.5
    assert main(["predict", str(model), str(images), "--max-false-alarms", "0.01"]) == 2
    assert "calibrate on more normal images (igd calibrate)" in capsys.readouterr().err


def test_rows_of_two_rates_are_not_mixed(
    model: Path, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", str(model), str(good), "--out", str(tmp_path / "out"), "--quiet"]
    assert main([*command, "--max-false-alarms", "0.2"]) == 0
    assert main([*command, "--resume"]) == 2
    told = capsys.readouterr().err
    assert "another model or other flags (max false alarms: 0.2, now 0.05)" in told
    assert main(["calibrate", str(model), "--max-false-alarms", "0.2"]) == 0
    assert main([*command, "--resume"]) == 2
    assert "another one, or was calibrated or updated since" in capsys.readouterr().err


def test_train_with_calibration_images(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_images(tmp_path / "train", stripes(12))
    command = ["train", str(folder), "-o", str(tmp_path / "new.igd"), "--quiet"]
    assert main([*command, "--calibration-images", str(good)]) == 0
    assert f"images of {good}" in capsys.readouterr().out
    assert IGD.load(tmp_path / "new.igd").provenance_["images"] == 12


def test_images_of_a_class_in_a_list_with_a_root(
    model: Path, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = write_images(tmp_path / "lists", stripes(1)) / "list.csv"
    rows = [
        f"{path.name},{'wall' if n % 2 else 'roof'},train"
        for n, path in enumerate(sorted(good.iterdir()))
    ]
    listed.write_text("\n".join(["path,label,split", *rows]))
    command = ["calibrate", str(model), str(listed), "--root", str(good), "--quiet"]
    assert main(command) == 2
    assert "has the classes roof, wall; say which one is normal" in capsys.readouterr().err
    assert main([*command, "--normal-class", "wall", "--max-false-alarms", "0.1"]) == 0
    assert IGD.load(model).provenance_["calibration_images"] == 15
    again = listed.with_name("again.csv")
    again.write_text(listed.read_text())
    new = tmp_path / "new.igd"
    train = ["train", str(listed), "-o", str(new), "--calibration-images", str(again), "--quiet"]
    train += ["--root", str(good), "--normal-class", "wall", "--max-false-alarms", "0.1"]
    assert main(train) == 0
    made = IGD.load(new).provenance_
    assert made["calibration_images"] + made["measuring_images"] == 15
