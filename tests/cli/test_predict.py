"""`igd predict`: its files, what a crash leaves of them, and that every image is decoded once."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import spotted, stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return write_images(tmp_path / "parts", spotted(stripes(6, seed=7)))


def test_json_lines_hold_what_the_csv_holds(model: Path, parts: Path, tmp_path: Path) -> None:
    for kind in ("csv", "jsonl"):
        assert main(["predict", str(model), str(parts), "--out", str(tmp_path / kind), "--format", kind, "--quiet"]) == 0
    rows = list(csv.DictReader((tmp_path / "csv" / "scores.csv").open()))
    lines = [json.loads(line) for line in (tmp_path / "jsonl" / "scores.jsonl").read_text().splitlines()]
    assert [{name: str(value) for name, value in line.items()} for line in lines] == rows
    assert len(rows) == 6


def test_raw_maps_are_the_predictions_maps(model: Path, parts: Path, tmp_path: Path) -> None:
    for kind in ("npy", "png16"):
        assert main(["predict", str(model), str(parts), "--out", str(tmp_path / kind), "--maps", kind, "--quiet"]) == 0
    for prediction in IGD.load(model).predict(parts):
        name = Path(prediction.name).stem + "_png"
        exact = np.load(tmp_path / "npy" / "maps" / f"{name}.npy", allow_pickle=False)
        np.testing.assert_array_equal(exact, prediction.map)
        with Image.open(tmp_path / "png16" / "maps" / f"{name}.png") as picture:
            assert picture.mode.startswith("I")
            np.testing.assert_allclose(np.asarray(picture) / 65535, prediction.map, atol=0.51 / 65535)


def test_raw_maps_need_a_folder(model: Path, parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(model), str(parts), "--maps", "npy"]) == 2
    assert "--maps npy needs a folder to write to; add --out" in capsys.readouterr().err


def test_no_image_is_decoded_twice(model: Path, parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: Counter[Path] = Counter()
    open_image = Image.open

    def counting(file, *arguments, **named):
        decoded[Path(file)] += 1
        return open_image(file, *arguments, **named)

    monkeypatch.setattr(Image, "open", counting)
    assert main(["predict", str(model), str(parts), "--out", str(tmp_path / "out"), "--maps", "png16", "--quiet"]) == 0
    assert decoded == dict.fromkeys(sorted(parts.iterdir()), 1)


def test_verbose_says_where_the_time_went(model: Path, parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(model), str(parts), "--json", "--quiet", "--verbose"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 6
    assert "in the model; decoding took" in captured.err


def test_a_crash_keeps_all_that_came_before(
    model: Path, parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not an unreadable image but a failure of the program, at the fifth image of a batch that holds all six."""
    open_image = Image.open

    def crashing(file, *arguments, **named):
        if Path(file).name == "004.png":
            raise MemoryError("no memory left")
        return open_image(file, *arguments, **named)

    monkeypatch.setattr(Image, "open", crashing)
    assert main(["predict", str(model), str(parts), "--out", str(tmp_path / "out"), "--quiet"]) == 1
    assert "no memory left" in capsys.readouterr().err
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").open()))
    assert [Path(row["path"]).name for row in rows] == ["000.png", "001.png", "002.png", "003.png"]


def test_a_killed_process_leaves_whole_rows_and_their_heat_maps(model: Path, tmp_path: Path) -> None:
    folder = write_images(tmp_path / "many", stripes(900))
    table = tmp_path / "out" / "scores.csv"
    command = [sys.executable, "-m", "igd.cli", "predict", str(model), str(folder), "--out", str(tmp_path / "out"), "--quiet"]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while not (table.exists() and table.read_text().count("\n") > 20):
        assert process.poll() is None
        time.sleep(0.002)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    text = table.read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert text.endswith("\n")
    assert 20 <= len(rows) < 900
    assert [Path(row["path"]).name for row in rows] == [f"{number:03d}.png" for number in range(len(rows))]
    for row in rows:
        assert 0 <= float(row["score"]) <= 1
        with Image.open(tmp_path / "out" / f"{Path(row['path']).stem}_png.png") as picture:
            picture.verify()
