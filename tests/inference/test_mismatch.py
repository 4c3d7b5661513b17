"""Images that are not as those a model learnt from are counted, or refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import stripes, write_images
from PIL import Image

from igd import IGD
from igd.cli import main
from igd.data.decoding import read_image
from igd.inference.mismatch import mismatches, record

LEARNT = record([(40, 30)] * 3, ["RGB"] * 3)


def saved(path: Path, image: Image.Image, **named: object) -> Image.Image:
    image.save(path, **named)
    return read_image(path)


def test_what_a_model_keeps() -> None:
    assert LEARNT == {"image_size": [40, 30], "image_mode": "in colour"}
    assert record([(4, 3), (3, 4)], ["L", "RGB"]) == {"image_size": None, "image_mode": None}
    assert record([(4, 3)], ["I;16", "L"][:1]) == {"image_size": [4, 3], "image_mode": "grey"}


@pytest.mark.parametrize(
    ("mode", "size", "says"),
    [
        ("RGB", (40, 30), []),
        ("RGBA", (40, 30), ["partly transparent, which is ignored"]),
        ("P", (40, 30), []),
        ("L", (40, 30), ["grey, and the model learnt from images that are in colour"]),
        ("I;16", (40, 30), ["grey, and the model learnt from images that are in colour"]),
        ("RGB", (80, 60), ["of another size than the 40x30 that the model learnt from"]),
        ("RGB", (30, 40), ["of another aspect ratio than the 40x30 that the model learnt from"]),
    ],
)
def test_each_difference_has_its_words(
    mode: str, size: tuple[int, int], says: list[str], tmp_path: Path
) -> None:
    image = saved(tmp_path / "part.png", Image.new(mode, size))
    assert list(mismatches(image, LEARNT)) == says


def test_what_is_opaque_is_not_transparent(tmp_path: Path) -> None:
    opaque = Image.new("RGBA", (40, 30), (9, 9, 9, 255))
    assert mismatches(saved(tmp_path / "part.png", opaque), LEARNT) == ()


def test_further_pages(tmp_path: Path) -> None:
    pages = [Image.new("RGB", (40, 30), (n, 0, 0)) for n in (50, 100, 150)]
    image = saved(tmp_path / "scan.tif", pages[0], save_all=True, append_images=pages[1:])
    assert image.getpixel((0, 0)) == (50, 0, 0)
    (told,) = mismatches(image, LEARNT)
    assert told == "of several pages or frames, of which the first is read"


def test_models_made_earlier_know_nothing(tmp_path: Path) -> None:
    assert mismatches(saved(tmp_path / "part.png", Image.new("L", (9, 9))), {}) == ()


def test_predict_counts_them_and_strict_refuses(
    fitted: IGD, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "model.igd")
    folder = write_images(tmp_path / "in", stripes(2))
    words = ["predict", str(tmp_path / "model.igd"), str(folder), "--quiet", "--json"]
    assert main([*words, "--strict"]) == 0
    assert "learnt" not in capsys.readouterr().err
    for number in range(2):
        coloured = stripes(1, side=64, colour=True)[0, :48]
        Image.fromarray(coloured).save(folder / f"new{number}.png")
    assert main(words) == 0
    told = capsys.readouterr()
    assert len([json.loads(line) for line in told.out.splitlines()]) == 4
    assert told.err.splitlines() == [
        "igd: 2 of 4 images are in colour, and the model learnt from images that are grey",
        "igd: 2 of 4 images are of another aspect ratio than the 32x32 that the model learnt from",
        told.err.splitlines()[-1],
    ]
    assert main([*words, "--strict"]) == 2
    assert "new0.png: is in colour, and the model learnt" in capsys.readouterr().err


def test_predictions_carry_them(fitted: IGD) -> None:
    assert fitted.predict(stripes(1)[0]).mismatches == ()
    assert fitted.predict(np.zeros((40, 40), dtype=np.uint8)).mismatches != ()


@pytest.mark.parametrize("learnt", [[0, 0], "wide", [40], {"w": 3}, ["a", "b"]])
def test_a_record_that_makes_no_sense_is_not_believed(learnt: object) -> None:
    assert mismatches(Image.new("RGB", (40, 30)), {"image_size": learnt}) == ()
