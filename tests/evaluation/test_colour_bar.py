"""The colour bar says what the pictures show."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from igd import IGD
from igd.evaluation.colour_bar import LEFT, RIGHT, WIDTH, colour_bar
from igd.evaluation.overlay import coloured_map, layer, outline
from igd.evaluation.results import COLOURS, Results
from igd.inference.regions import outlined


def stops(drawn: ElementTree.Element, name: str) -> list[tuple[float, list[float]]]:
    """Where a gradient has which colour and opacity, as it is drawn."""
    gradient = next(each for each in drawn.iter() if each.get("id") == name)
    return [
        (
            float(stop.get("offset", "")),
            [
                *map(float, stop.get("stop-color", "").strip("rgb()").split(",")),
                255 * float(stop.get("stop-opacity", "")),
            ],
        )
        for stop in gradient
    ]


def test_gradients_are_the_colours_of_maps_and_overlays() -> None:
    values = np.linspace(0, 1, 51, dtype=np.float32)[None]
    drawn = ElementTree.fromstring(colour_bar(0.3, 0.605))
    shown = np.concatenate(
        [
            np.asarray(coloured_map(values, 0.3, 0.605))[0],
            np.asarray(layer(values, 0.3, 0.605))[0],
        ],
        axis=1,
    )
    bar = [stops(drawn, name) for name in ("map-colours", "overlay-colours")]
    expected = np.stack(
        [
            np.interp(values[0], [at for at, _ in part], [colour[channel] for _, colour in part])
            for part, channels in zip(bar, (3, 4), strict=True)
            for channel in range(channels)
        ],
        axis=1,
    )
    lines = outline(outlined(values, 0.3, 0.605)) | outline(~outlined(values, 0.3, 0.605))
    away = ~lines[0]
    assert away.sum() == 49
    np.testing.assert_allclose(shown[away], expected[away], atol=1)


@pytest.mark.parametrize(("usual", "threshold"), [(0, 0.05), (0.02, 1), (0.45, 0.5), (0.95, 0.99)])
def test_words_stay_within_the_drawing_and_apart(usual: float, threshold: float) -> None:
    drawn = ElementTree.fromstring(colour_bar(usual, threshold))
    rows = set()
    for text in drawn.iter("text"):
        wide = 6.5 * len(text.text or "")
        x = float(text.get("x", "")) - (wide if text.get("text-anchor") == "end" else 0)
        assert x >= 0
        if text.get("text-anchor") == "start":
            assert x + wide <= WIDTH
        rows.add(text.get("y"))
    assert len(rows) == 5
    assert str(WIDTH - LEFT - RIGHT) in {each.get("width") for each in drawn.iter("rect")}


def test_predictions_in_a_folder_come_with_their_colours(fitted: IGD, tmp_path) -> None:
    Results(tmp_path, fitted)
    drawn = ElementTree.fromstring((tmp_path / COLOURS).read_text())
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert f"threshold {fitted.pixel_threshold_:.2f}" in "".join(drawn.itertext())
    assert "var(" not in (tmp_path / COLOURS).read_text()
