"""`igd update`: more good images, from a folder into a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import stripes, write_images

from igd import IGD
from igd.cli import main

pytestmark = pytest.mark.xdist_group("update")
SIDE = 96


@pytest.fixture(scope="module")
def learnt() -> IGD:
    return IGD(image_size=SIDE, scales=("position",)).fit(stripes(20, SIDE, colour=True))


def test_a_folder_into_the_same_file_or_another(
    learnt: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, new = tmp_path / "parts.igd", tmp_path / "new.igd"
    learnt.save(model)
    good = write_images(tmp_path / "good", stripes(8, SIDE, 1, colour=True))
    (good / "broken.png").write_text("no image")
    before = model.read_bytes()
    assert main(["update", str(model), str(good), "-o", str(new), "--json", "--quiet"]) == 0
    captured = capsys.readouterr()
    said = json.loads(captured.out)
    assert (said["images"], said["calibration_images"], said["model"]) == (28, 28, str(new))
    assert said["updates"][0]["source"] == str(good)
    assert "left out" in captured.err
    assert model.read_bytes() == before
    assert main(["update", str(model), str(good), "--quiet"]) == 0
    assert "learnt from 8 more images, 28 in all" in capsys.readouterr().out
    assert IGD.load(model).provenance_["images"] == 28
    assert main(["info", str(model)]) == 0
    told = capsys.readouterr().out
    assert f"8 more of {good}" in told
    assert "28 in all" in told
    assert "learnt from   20 images" in told
    assert "cross-fitted" in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["parts.onnx", "good"], "update the .igd file"),
        (["good", "parts.igd"], "the model comes first"),
        (["parts.igd", "nowhere"], "no such folder"),
        (["parts.igd", "good", "-o", "new.onnx"], "name a model file, such as new.igd"),
        (["parts.igd", "good", "--max-false-alarms", "0.001"], "needs at least 999"),
        (["parts.igd", "good", "--strict"], "broken.png"),
    ],
)
def test_what_is_refused_leaves_the_file_alone(
    arguments: list[str],
    says: str,
    learnt: IGD,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    learnt.save("parts.igd")
    write_images(tmp_path / "good", stripes(2, SIDE, 1, colour=True))
    (tmp_path / "good" / "broken.png").write_text("no image")
    before = Path("parts.igd").read_bytes()
    assert main(["update", *arguments, "--quiet"]) == 2
    assert says in capsys.readouterr().err
    assert Path("parts.igd").read_bytes() == before
