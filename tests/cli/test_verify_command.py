"""`igd verify` knows whole files from damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from igd import IGD
from igd.cli import main


def flipped(path: Path, at: float) -> Path:
    contents = bytearray(path.read_bytes())
    contents[int(at * len(contents))] ^= 16
    target = path.with_name(f"damaged{at}{path.suffix}")
    target.write_bytes(contents)
    return target


def test_a_whole_file(fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted.save(tmp_path / "parts.igd")
    assert main(["verify", str(tmp_path / "parts.igd"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["is_whole"]
    assert said["has_checksum"]
    assert said["images"] == 8
    assert said["difference"] < 1e-3


@pytest.mark.parametrize("at", [0.3, 0.5, 0.8, 0.999])
def test_one_flipped_bit(
    at: float, fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "parts.igd")
    damaged = flipped(tmp_path / "parts.igd", at)
    assert main(["verify", str(damaged), str(tmp_path / "parts.igd"), "--json"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("igd: error: ")
    first, second = map(json.loads, out.splitlines())
    assert not first["is_whole"]
    assert "damaged" in first["error"]
    assert second["is_whole"]  # the others are checked all the same


def test_it_is_no_answer_when_scores_are_no_numbers(
    fitted: IGD,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from conftest import stripes, write_images

    fitted.save(tmp_path / "parts.igd")
    images = write_images(tmp_path / "new", stripes(2))
    scored = IGD.score_batch

    def broken(detector: IGD, pixels: np.ndarray, places: object = None) -> object:
        return scored(detector, pixels)._replace(score=np.full(len(pixels), np.nan))

    monkeypatch.setattr(IGD, "score_batch", broken)
    assert main(["predict", str(tmp_path / "parts.igd"), str(images), "--quiet"]) == 2
    told = capsys.readouterr()
    assert "normal" not in told.out
    assert "damaged" in told.err
