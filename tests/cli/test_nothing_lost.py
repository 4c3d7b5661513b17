"""`igd predict` and `igd train` lose nothing: names, rows, and each other's work."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import spotted, stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main
from igd.errors import UserError
from igd.evaluation.results import TableFormat, read_rows
from igd.files import locked
from igd.text import visible


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


def predict(model: Path, *given: object) -> int:
    return main(["predict", str(model), *map(str, given), "--quiet"])


def test_images_of_equal_names_have_a_heat_map_each(model: Path, tmp_path: Path) -> None:
    names = ("A/x.png", "B/x.png", "a/b.png", "a_b.png", "x.y.png", "x_y.png", "maps/q.png")
    for number, name in enumerate(names):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(stripes(1, seed=number)[0]).save(path)
    out = tmp_path / "out"
    assert predict(model, tmp_path / "in", "--out", out, "--maps", "npy") == 0
    assert {str(path.relative_to(out)) for path in out.rglob("*.png")} == {
        f"{name}.png" for name in names
    }
    assert len(list((out / "maps").rglob("*.npy"))) == len(names)


def test_of_several_folders_too(model: Path, tmp_path: Path) -> None:
    for name in "AB":
        write_images(tmp_path / "in" / name, stripes(2))
    out = tmp_path / "out"
    assert predict(model, tmp_path / "in" / "A", tmp_path / "in" / "B", "--out", out) == 0
    assert len(list(out.rglob("*.png"))) == 4


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_second_call_takes_nothing_away_and_goes_on(
    model: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    images, out, flags = tmp_path / "in", tmp_path / "out", ("--format", kind)
    write_images(images, spotted(stripes(9)))
    assert predict(model, images, "--out", tmp_path / "whole", *flags) == 0
    table, whole = out / f"scores.{kind}", tmp_path / "whole" / f"scores.{kind}"
    assert predict(model, images, "--out", out, *flags) == 0
    for kept in (60, len(whole.read_bytes()) // 2, len(whole.read_bytes())):
        table.write_bytes(whole.read_bytes()[:kept])  # as a crash may leave it
        (out / ".003.png.png.abc.part").write_bytes(b"half")
        assert predict(model, images, "--out", out, *flags) == 2
        assert "--resume" in capsys.readouterr().err
        assert table.read_bytes() == whole.read_bytes()[:kept]
        assert predict(model, images, "--out", out, *flags, "--resume") == 0
        assert table.read_bytes() == whole.read_bytes()
        assert not list(out.glob(".*.part"))


def test_it_does_not_go_on_with_another_model(
    model: Path, fitted_large: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = write_images(tmp_path / "in", stripes(3))
    assert predict(model, images, "--out", tmp_path / "out") == 0
    fitted_large.save(model)
    assert predict(model, images, "--out", tmp_path / "out", "--resume") == 2
    assert "another model" in capsys.readouterr().err


def test_tables_of_two_formats_come_from_one_model(
    model: Path, fitted_large: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, out = write_images(tmp_path / "in", stripes(2)), tmp_path / "out"
    lines = ("--format", "jsonl")
    assert predict(model, images, "--out", out) == 0
    assert predict(model, images, "--out", out, *lines, "--maps", "npy") == 0
    assert predict(model, images, "--out", out, *lines, "--overwrite") == 0
    before = (out / "scores.csv").read_bytes()
    other = tmp_path / "other.igd"
    fitted_large.save(other)
    (out / "scores.jsonl").unlink()
    for flags in ((), ("--resume",)):
        assert predict(other, images, "--out", out, *lines, *flags) == 2
        assert "another model" in capsys.readouterr().err
    assert (out / "scores.csv").read_bytes() == before
    assert predict(other, images, "--out", out, *lines, "--overwrite") == 0
    assert not (out / "scores.csv").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_no_text(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    names = (b"fine.png", b"caf\xe9.png", b"two\nlines.png", b"\x1b[31mred.png")
    for number, name in enumerate(names):
        Image.fromarray(stripes(1, seed=number)[0]).save(folder / os.fsdecode(name), "PNG")
    (folder / "bad\x1b[2J.png").write_bytes(b"nothing")
    assert predict(model, folder, "--skip-unreadable") == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 4
    for text in (told.out, told.err):
        assert "\x1b" not in text
        text.encode("utf-8")
    assert "caf\\xe9.png" in told.out
    for flags in ((), ("--format", "jsonl")):
        out = tmp_path / f"out{len(flags)}"
        assert predict(model, folder, "--out", out, "--skip-unreadable", *flags) == 0
        assert len(list(out.rglob("*.png"))) == 4
    rows = list(csv.DictReader((tmp_path / "out0" / "scores.csv").open(newline="")))
    lines = (tmp_path / "out2" / "scores.jsonl").read_text().splitlines()
    assert len(rows) == len(list(map(json.loads, lines))) == 5


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert visible("a\x1b[2J\r\n\u202eb\udce9\x9b") == "a\\x1b[2J\\r\\n\\u202eb\\xe9\\x9b"
    assert visible("grün 图像.png") == "grün 图像.png"
    assert str(UserError("a\nb")) == "a\\nb"


def test_an_unreadable_image_fails_the_call_unless_it_is_expected(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_images(tmp_path / "in", spotted(stripes(2)))
    (folder / "bad.png").write_bytes(b"nothing")
    for flags, code in (((), 1), (("--skip-unreadable",), 0), (("--strict",), 2)):
        assert predict(model, folder, *flags) == code
    assert capsys.readouterr().err.count("igd: 3 images: 2 alarms, 1 unreadable\n") == 2
    assert predict(model, folder / "bad.png", "--skip-unreadable") == 2
    assert "none of the 1 images could be read" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_unreadable_image_keeps_its_row_when_a_call_goes_on(
    model: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    images, flags = write_images(tmp_path / "in", spotted(stripes(4))), ("--format", kind)
    (images / "001.png").write_bytes(b"nothing")
    assert predict(model, images, "--out", tmp_path / "whole", *flags) == 1
    whole = (tmp_path / "whole" / f"scores.{kind}").read_bytes()
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "igd: 4 images: 3 alarms, 1 unreadable"
    for rows in range(1, 6):
        out = tmp_path / f"out{rows}"
        assert predict(model, images, "--out", out, *flags) == 1
        table = out / f"scores.{kind}"
        table.write_bytes(b"".join(whole.splitlines(keepends=True)[:rows]))
        assert predict(model, images, "--out", out, *flags, "--resume") == 1
        assert sorted(table.read_bytes().splitlines()) == sorted(whole.splitlines())
        assert capsys.readouterr().err.splitlines()[-1] == told


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_image_that_was_unreadable_is_scored_when_a_call_goes_on(
    model: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    images, out = write_images(tmp_path / "in", spotted(stripes(3))), tmp_path / "out"
    flags = ("--out", out, "--format", kind)
    whole = (images / "001.png").read_bytes()
    for name in ("000.png", "001.png"):
        (images / name).write_bytes(b"nothing")
    assert predict(model, images, *flags) == 1
    (images / "001.png").write_bytes(whole)
    assert predict(model, images / "001.png", *flags, "--resume") == 1
    assert capsys.readouterr().err.splitlines()[-1] == "igd: 3 images: 2 alarms, 1 unreadable"
    rows = [(Path(row["path"]).name, bool(row["error"])) for row in read(out, kind)]
    assert rows == [("000.png", True), ("002.png", False), ("001.png", False)]


def read(out: Path, kind: TableFormat) -> list[dict[str, Any]]:
    return list(read_rows(out / f"scores.{kind}", kind))


def test_one_odd_file_does_not_stop_the_others(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_images(tmp_path / "in", stripes(4))
    load, odd = Image.Image.convert, iter([TypeError("odd"), OverflowError("odd")])

    def failing(image: Image.Image, mode: str = "", *rest: object, **named: object) -> Image.Image:
        if mode == "RGB" and (error := next(odd, None)):
            raise error
        return load(image, mode, *rest, **named)

    monkeypatch.setattr(Image.Image, "convert", failing)
    assert predict(model, folder, "--skip-unreadable") == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2
    assert told.err.count("can't be decoded (odd)") == 2


def test_a_second_training_of_one_output_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = write_images(tmp_path / "in", stripes(30))
    target = tmp_path / "parts.igd"
    holding = (
        "import sys, time; from pathlib import Path; from igd.files import locked\n"
        "with locked(Path(sys.argv[1]), 'training'): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", holding, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        for command in (["train"], ["pretrain", "distill"], ["pretrain", "contrastive"]):
            assert main([*command, str(images), "-o", str(target), "--quiet"]) == 2
            assert "another igd is training it" in capsys.readouterr().err
            assert not target.exists()
    finally:
        holder.kill()
        holder.wait()
    with locked(target, "training"):  # whoever died lets go
        pass
    assert not list(tmp_path.glob(".*lock"))
