"""An exported model that reads tiles says of whole images what its original says."""

from pathlib import Path

import numpy as np
import pytest
from conftest import spotted, stripes
from PIL import Image

from igd import IGD
from igd.cli import main
from igd.inference.runtime import Runtime

pytest.importorskip("onnxscript", reason="export needs the extra 'export'")
pytestmark = pytest.mark.xdist_group("export tiles")


def parts(count: int, seed: int) -> np.ndarray:
    """Stripes that have their place: a dark field lies always in one corner."""
    images = stripes(count, side=200, seed=seed)
    images[:, :90, :90] = 40 + images[:, :90, :90] // 8
    return images


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[IGD, Path]:
    folder = tmp_path_factory.mktemp("tiles")
    detector = IGD(tile=96, tile_descriptors="own", scales=("position",)).fit(parts(6, seed=0))
    detector.save(folder / "parts.igd")
    Image.fromarray(parts(1, seed=1)[0]).save(folder / "check.png")
    command = ["export", str(folder / "parts.igd"), str(folder / "parts.onnx"), "--quiet"]
    assert main([*command, "--check", str(folder / "check.png")]) == 0
    return detector, folder / "parts.onnx"


def test_whole_images_score_as_by_the_original(exported: tuple[IGD, Path]) -> None:
    detector, path = exported
    runtime = Runtime.load(path)
    assert runtime.tiling_ == detector.tiling_
    assert runtime.tiling_.size == (200, 200)
    images = [parts(1, seed=2)[0], spotted(parts(1, seed=3), (120, 130))[0]]
    for image in images:
        ours, theirs = detector.predict(image), runtime.predict(image)
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
        assert theirs.is_anomalous == ours.is_anomalous
        np.testing.assert_allclose(theirs.map, ours.map, atol=1e-3)
        assert theirs.terms.keys() == ours.terms.keys()


def test_it_is_known_for_what_it_is(
    exported: tuple[IGD, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = exported[1]
    assert main(["verify", str(path)]) == 0
    assert main(["info", str(path)]) == 0
    assert "tiles of 96x96 pixels, grey, 6.2% overlap, each its own" in capsys.readouterr().out
