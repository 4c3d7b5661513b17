"""`igd info` tells where a model came from, in numbers that the model itself has."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes

from igd import IGD
from igd.cli import main
from igd.cli.info_command import bars
from igd.deploy.model_info import histogram


def test_what_a_model_says_about_itself(
    fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "parts.igd"
    fitted.save(path)
    detector = IGD.load(path).calibrate(stripes(30, seed=5), max_false_alarms=0.1)
    detector.save(path)
    assert main(["info", str(path), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert (info["recipe"], info["seed"], info["images"]) == ("fast", 1, 160)
    assert (info["bytes"], info["threshold"]) == (path.stat().st_size, detector.threshold_)
    assert info["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert info["calibration"]["images"] == sum(info["histogram"]["counts"]) == 30
    (former,) = info["history"]
    assert (former["images"], former["threshold"]) == (40, fitted.threshold_)
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    for part in (info["sha256"], "10.0%", "learnt from   160 images", "40 images", "^ threshold"):
        assert part in said
    assert any(block in said for block in "▁▂▃▄▅▆▇█")


def test_what_was_said_in_training_stays(
    fitted_large: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted_large.save(tmp_path / "large.igd")
    assert main(["info", str(tmp_path / "large.igd"), "--json"]) == 0
    assert any("model:" in each for each in json.loads(capsys.readouterr().out)["warnings"])


def test_no_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path / "none.igd")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_every_score_is_in_the_histogram_and_every_count_has_a_bar() -> None:
    scores = np.random.default_rng(0).normal(size=500)
    made = histogram(scores, 5.0)
    assert (sum(made["counts"]), made["high"]) == (500, 5.0)
    drawn = bars(made["counts"])
    assert [bar == " " for bar in drawn] == [count == 0 for count in made["counts"]]
    assert sum(histogram(np.full(3, 0.5), 0.5)["counts"]) == 3
    assert bars([0, 0]) == "  "
