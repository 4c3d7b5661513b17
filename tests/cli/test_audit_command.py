"""`igd audit`: what it prints and writes."""

import csv
import json
from pathlib import Path

import pytest
from conftest import spotted, stripes, write_images

from igd.cli import main

QUICK = ["--folds", "2", "--quiet"]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    images = stripes(20)
    images[7] = spotted(images[7:8], size=16)[0]
    return write_images(tmp_path / "parts", images)


def test_table_page_and_lines_agree(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit"
    assert main(["audit", str(parts), "--out", str(out), *QUICK, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = list(csv.DictReader((out / "audit.csv").open()))
    assert [{name: str(value) for name, value in line.items()} for line in lines] == rows
    assert list(rows[0]) == ["rank", "path", "score", "p_value", "deviation", "fold"]
    assert [line["rank"] for line in lines] == list(range(1, 21))
    assert {Path(line["path"]) for line in lines} == set(parts.iterdir())
    assert str(parts / "007.png") in (out / "audit.html").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["audit.csv", "audit.html"]


def test_prints_for_people(parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(parts), "--out", str(tmp_path / "audit"), *QUICK]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("   1  deviation ")
    assert len(printed) == 13
    assert printed[10].startswith("10 images a model are few")


def test_an_unreadable_image_is_named_or_refused(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (parts / "004.png").write_text("text")
    command = ["audit", str(parts), "--out", str(tmp_path / "audit"), *QUICK, "--json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 19
    assert "004.png: not an image" in captured.err
    assert main([*command, "--strict"]) == 2


def test_impossible_folds(parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["audit", str(parts), "--out", str(tmp_path / "audit"), "--folds", "1", "--quiet"])
        == 2
    )
    assert "folds is 1; with 20 images it must lie between 2 and 20" in capsys.readouterr().err
