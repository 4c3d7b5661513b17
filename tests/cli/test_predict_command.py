"""`igd predict`: its files, what a crash leaves of them, and that every image is decoded once."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from clips import write_clip
from conftest import spotted, stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main
from igd.data import decoding

LAID = (("y", "height"), ("x", "width"))  # the sides of a box, in the order of an array's axes


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return write_images(tmp_path / "parts", spotted(stripes(6, seed=7)))


def predict(model: Path, images: Path, out: Path, *flags: str) -> int:
    return main(["predict", str(model), str(images), "--out", str(out), "--quiet", *flags])


def test_json_lines_hold_what_the_csv_holds(model: Path, parts: Path, tmp_path: Path) -> None:
    (parts / "text.png").write_text("text")
    for kind in ("csv", "jsonl"):
        assert predict(model, parts, tmp_path / kind, "--format", kind) == 1
    rows = list(csv.DictReader((tmp_path / "csv" / "scores.csv").open()))
    lines = [
        json.loads(line) for line in (tmp_path / "jsonl" / "scores.jsonl").read_text().splitlines()
    ]
    assert len(rows) == len(lines) == 7
    for row, line in zip(rows, lines, strict=True):
        assert row.keys() == line.keys()
        assert json.loads(row.pop("regions")) == line.pop("regions")
        assert row == {name: "" if value is None else str(value) for name, value in line.items()}
    assert "not an image" in rows[-1]["error"]


def test_raw_maps_are_the_predictions_maps(model: Path, parts: Path, tmp_path: Path) -> None:
    for kind in ("npy", "png16"):
        assert predict(model, parts, tmp_path / kind, "--maps", kind) == 0
    for prediction in IGD.load(model).predict(parts):
        name = Path(prediction.name).name
        exact = np.load(tmp_path / "npy" / "maps" / f"{name}.npy", allow_pickle=False)
        np.testing.assert_array_equal(exact, prediction.map)
        with Image.open(tmp_path / "png16" / "maps" / f"{name}.png") as picture:
            assert picture.mode.startswith("I")
            np.testing.assert_allclose(
                np.asarray(picture) / 65535, prediction.map, atol=0.51 / 65535
            )


def test_regions_are_where_the_defects_are(
    model: Path, parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(parts), "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row, prediction in zip(rows, IGD.load(model).predict(parts), strict=True):
        boxes = [
            tuple(slice(each[at], each[at] + each[long]) for at, long in LAID)
            for each in row["regions"]
        ]
        assert any(16 in range(40)[y] and 24 in range(40)[x] for y, x in boxes)
        for box, region in zip(boxes, row["regions"], strict=True):
            assert prediction.map[box].max() >= region["peak"] > 0
            assert 0 < region["area"] <= region["width"] * region["height"]
            assert 0 < region["p_value"] <= 1


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--maps", "npy"], "--maps npy needs a folder to write to; add --out"),
        (["--format", "jsonl"], "--format jsonl needs a folder to write to; add --out"),
        (["--overwrite"], "--overwrite replaces the scores of a folder; add --out"),
        (["--resume"], "--resume goes on with the scores of a folder; add --out"),
    ],
)
def test_what_needs_a_folder(
    flags: list[str], says: str, model: Path, parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(parts), *flags]) == 2
    assert says in capsys.readouterr().err


def test_no_image_is_decoded_twice(
    model: Path, parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: Counter[Path] = Counter()
    opened: Counter[str] = Counter()
    decode, open_image = decoding.decode_image, Image.open

    def counting(file, *arguments, **named):
        decoded[file] += 1
        return decode(file, *arguments, **named)

    def opening(*arguments, **named):
        opened["images"] += 1
        return open_image(*arguments, **named)

    monkeypatch.setattr(decoding, "decode_image", counting)
    monkeypatch.setattr(Image, "open", opening)
    assert predict(model, parts, tmp_path / "out", "--maps", "png16") == 0
    assert decoded == dict.fromkeys(sorted(parts.iterdir()), 1)
    # Once for the size that its header claims, once to decode it.
    assert opened["images"] == 2 * len(list(parts.iterdir()))


def test_verbose_says_where_the_time_went(
    model: Path, parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(parts), "--json", "--quiet", "--verbose"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 6
    assert "in the model; decoding took" in captured.err


def test_a_crash_keeps_all_that_came_before(
    model: Path,
    parts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not an unreadable image but a failure of the program, at the fifth image of a batch that
    holds all six.
    """
    decode = decoding.decode_image

    def crashing(file, *arguments, **named):
        if Path(file).name == "004.png":
            raise MemoryError("no memory left")
        return decode(file, *arguments, **named)

    monkeypatch.setattr(decoding, "decode_image", crashing)
    assert predict(model, parts, tmp_path / "out") == 1
    assert "no memory left" in capsys.readouterr().err
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").open()))
    assert [Path(row["path"]).name for row in rows] == ["000.png", "001.png", "002.png", "003.png"]


KILLED = """
import os, signal, sys
from igd.cli import main
from igd.evaluation.results import Table

write, rows = Table.write, []

def killing(table, row):
    if len(rows) == 29:
        os.kill(os.getpid(), signal.SIGKILL)
    rows.append(row)
    write(table, row)

Table.write = killing
main(sys.argv[1:])
"""


def test_a_killed_process_leaves_whole_rows_and_their_anomaly_maps(
    model: Path, tmp_path: Path
) -> None:
    """Killed without a chance to tidy up, between the map and the row of the thirtieth image."""
    folder = write_images(tmp_path / "many", stripes(40))
    table = tmp_path / "out" / "scores.csv"
    command = ["predict", str(model), str(folder), "--out", str(tmp_path / "out"), "--quiet"]
    process = subprocess.run(
        [sys.executable, "-c", KILLED, *command],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
        timeout=200,
    )
    assert process.returncode == -signal.SIGKILL
    text = table.read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert text.endswith("\n")
    assert len(rows) == 29
    assert [Path(row["path"]).name for row in rows] == [
        f"{number:03d}.png" for number in range(len(rows))
    ]
    for row in rows:
        assert 0 <= float(row["score"]) <= 1
        with Image.open(tmp_path / "out" / f"{Path(row['path']).name}.png") as picture:
            picture.verify()


def test_images_that_no_longer_look_like_the_calibration_ones_are_noticed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_images(tmp_path / "good", stripes(80, seed=21))
    assert main(["predict", str(model), str(good), "--json", "--quiet"]) == 0
    assert "no longer look" not in capsys.readouterr().err
    odd = write_images(tmp_path / "odd", spotted(stripes(80, seed=22)))
    assert main(["predict", str(model), str(odd), "--json", "--quiet"]) == 0
    told = capsys.readouterr()
    assert "of the last 80 images" in told.err
    assert "5% were promised" in told.err
    assert len(told.out.splitlines()) == 80


def test_frames_of_a_clip_are_rows(
    fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "model.igd")
    frames = np.concatenate([stripes(6, seed=3), spotted(stripes(6, seed=3), size=16)])
    clip, out = write_clip(tmp_path / "clip.mp4", frames), tmp_path / "out"
    command = ["predict", str(tmp_path / "model.igd"), str(clip), "--every", "2"]
    assert main([*command, "--out", str(out), "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["path"] for row in rows] == [f"{clip}#{n:06d}" for n in range(0, 12, 2)]
    assert [row["is_anomalous"] for row in rows] == [False] * 3 + [True] * 3
    assert (out / "clip.mp4#000010.png").exists()
    assert main([*command, "--out", str(out), "--resume", "--quiet"]) == 0
    assert "6 images: 3 alarms" in capsys.readouterr().err
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(clip.read_bytes()[:200])
    assert main(["predict", command[1], str(clip), str(broken), "--quiet", "--every", "4"]) == 1
    told = capsys.readouterr().err
    assert "broken.mp4: can't be read as a clip" in told
    assert "4 images: 1 alarm, 1 unreadable" in told
    assert main([*command[:3], "--every", "0"]) == 2
    assert "give a number of frames" in capsys.readouterr().err
    assert len(fitted.predict(clip)) == 12


def test_evaluate_refuses_what_differs_if_it_is_strict(
    fitted: IGD, category: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "model.igd")
    data = shutil.copytree(category, tmp_path / "data")
    Image.open(data / "test/good/003.png").resize((64, 32)).save(data / "test/good/003.png")
    command = ["evaluate", str(tmp_path / "model.igd"), str(data), "--quiet"]
    assert main(command) == 0
    assert "1 of 20 images are of another aspect ratio" in capsys.readouterr().err
    assert main([*command, "--strict"]) == 2
    assert "003.png: is of another aspect ratio" in capsys.readouterr().err
