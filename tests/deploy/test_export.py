"""An exported model agrees with its original, runs without PyTorch, and is not written where it
disagrees.
"""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import spotted, stripes
from PIL import Image

from igd import IGD
from igd.cli import main
from igd.deploy.export import export
from igd.errors import ModelWarning, UserError
from igd.inference.checksum import with_checksum
from igd.inference.runtime import HEADER, Runtime

pytest.importorskip("onnxscript", reason="export needs the extra 'export'")
pytestmark = [pytest.mark.filterwarnings("ignore:.*model.*"), pytest.mark.xdist_group("export")]

KINDS = {
    "long": {"image_size": 96},
    "every scale": {
        "image_size": 192,
        "scales": ("global", "local", "pixel"),
        "steps": 2,
        "width": 2,
        "roi": "4,0,180,190",
        "ignore": ["60,60,50,40"],
        "align": True,
    },
    "small and grey": {},
    "from scratch": {"pretrain": "scratch", "steps": 2, "width": 2},
}


def images(kind: str, count: int, seed: int = 0) -> np.ndarray:
    side = KINDS[kind].get("image_size", 32)
    made = stripes(count, side=side, seed=seed, colour="grey" not in kind)
    return made[:, : side * 5 // 8] if kind == "long" else made


@cache
def exported_once(kind: str, folder: Path) -> tuple[str, IGD, Path]:
    """Tracing takes half a minute: once for each kind, in whatever order the tests come."""
    detector = IGD(**KINDS[kind], calibration=0.5).fit(images(kind, 24))
    path = folder / f"{kind.replace(' ', '-')}.onnx"
    parity = export(detector, path)
    assert parity.images == 8
    assert parity.score < 1e-4
    # Maps are errors in units of a spread that three images of two steps' training make small.
    assert parity.map < 1e-3
    return kind, detector, path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(params=list(KINDS))
def exported(request: pytest.FixtureRequest, folder: Path) -> tuple[str, IGD, Path]:
    return exported_once(request.param, folder)


def test_scores_maps_and_verdicts_agree_in_any_batch(exported: tuple[str, IGD, Path]) -> None:
    kind, detector, path = exported
    runtime = Runtime.load(path, threads=1)
    for count in (1, 5):
        new = spotted(images(kind, count, seed=count), at=(8, 8))
        for one, other in zip(detector.predict(new), runtime.predict(new), strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert (one.p_value, one.is_anomalous) == (other.p_value, other.is_anomalous)
            np.testing.assert_allclose(one.map, other.map, atol=1e-3)
            assert one.pose == other.pose
            assert one.terms == pytest.approx(other.terms, rel=1e-3, abs=1e-4)


def test_the_graph_gives_the_p_value_itself(exported: tuple[str, IGD, Path]) -> None:
    kind, detector, path = exported
    runtime = Runtime.load(path, threads=1)
    new = images(kind, 4, seed=7)
    read = [
        pixels for each in new for pixels, _ in detector.model_inputs("", Image.fromarray(each))
    ]
    pixels = np.concatenate(read)
    pixels = np.repeat(pixels, 3, axis=1) if pixels.shape[1] == 1 else pixels
    p_value = runtime.session.run({"pixels": pixels})[1]
    assert p_value == pytest.approx([each.p_value for each in detector.predict(new)])


def test_the_file_is_valid_and_tells_of_its_check_but_of_no_place(
    exported: tuple[str, IGD, Path],
) -> None:
    kind, _, path = exported
    model = onnx.load(path)
    onnx.checker.check_model(model)
    header = json.loads({each.key: each.value for each in model.metadata_props}[HEADER])
    assert header["parity"]["images"] == 8
    assert header["parity"]["tolerance"] == 1e-3
    if kind != "from scratch":
        assert header["attribution"]["licence"] == "Apache-2.0"
    assert str(Path.cwd()).encode() not in path.read_bytes()


def test_it_says_what_it_is_without_names_and_takes_another_rate(
    exported: tuple[str, IGD, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    kind, detector, path = exported
    assert main(["info", str(path), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["kind"] == "export"
    assert (info["recipe"], info["scales"]) == ("fast", detector.identity_["scales"])
    assert info["calibration"]["images"] == len(detector.calibration_.scores)
    assert info["threshold"] == pytest.approx(detector.threshold_)
    assert Runtime.load(path, threads=1).geometry_ == detector.geometry_
    assert bool(info["roi"]) == (kind == "every scale")
    assert "source" not in info["calibration"]
    assert main(["info", str(path)]) == 0
    assert "^ threshold" in capsys.readouterr().out
    runtime = Runtime.load(path, threads=1)
    runtime.max_false_alarms = 0.5
    assert runtime.threshold_ < detector.threshold_
    for each in runtime.predict(images(kind, 6, seed=9)):
        assert each.is_anomalous == (each.p_value <= 0.5 + 1e-12)


@pytest.fixture
def traced_once(small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing takes half a minute: the tests below take the graph of the first file."""
    monkeypatch.setattr("igd.deploy.export.as_graph", lambda _: onnx.load(small[1]))


@pytest.fixture
def small(folder: Path) -> tuple[Path, Path]:
    """A model file, and what was exported from it."""
    _, detector, path = exported_once("long", folder)
    if not (folder / "parts.igd").exists():
        detector.save(folder / "parts.igd")
    return folder / "parts.igd", path


def test_a_model_that_disagrees_is_not_written(
    small: tuple[Path, Path], tmp_path: Path, capsys, monkeypatch
) -> None:
    """Forced by a graph whose weights were changed on the way."""

    def spoilt(_: IGD) -> onnx.ModelProto:
        model = onnx.load(small[1])
        largest = max(model.graph.initializer, key=lambda each: len(each.raw_data))
        values = np.frombuffer(largest.raw_data, np.float32) * 1.05
        largest.raw_data = values.astype(np.float32).tobytes()
        return model

    monkeypatch.setattr("igd.deploy.export.as_graph", spoilt)
    assert main(["export", str(small[0]), str(tmp_path / "no.onnx"), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert "disagrees with the original, so nothing was written" in told
    assert "0.001 is allowed; a larger --tolerance accepts it" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("traced_once")
def test_eight_bit_convolutions_are_smaller_and_pass_the_same_gate(
    small: tuple[Path, Path], tmp_path: Path, capsys
) -> None:
    command = ["export", str(small[0]), str(tmp_path / "small.onnx"), "--int8", "--quiet", "--json"]
    assert main([*command, "--tolerance", "1e-6"]) == 2
    assert "1e-06 is allowed" in capsys.readouterr().err
    assert main([*command, "--tolerance", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] < small[1].stat().st_size
    assert 0 < told["score"] < 1
    assert Runtime.load(tmp_path / "small.onnx").predict(images("long", 1)[0]).score >= 0


@pytest.mark.usefixtures("traced_once")
def test_images_to_check_on_can_be_named(
    small: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "check").mkdir()
    for number, image in enumerate(images("long", 3, seed=5)):
        Image.fromarray(image).save(tmp_path / "check" / f"{number}.png")
    command = [
        "export",
        str(small[0]),
        str(tmp_path / "out.onnx"),
        "--check",
        str(tmp_path / "check"),
        "--quiet",
    ]
    assert main(command) == 0
    assert "3 images: scores differ by at most" in capsys.readouterr().out


def test_what_is_missing_is_said_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = IGD(image_size=96).fit(images("long", 6))
    monkeypatch.setattr("igd.deploy.export.TRACER", "not_installed")
    monkeypatch.setattr("igd.deploy.export.as_graph", lambda _: pytest.fail("began"))
    with pytest.raises(
        UserError, match=r"needs the package not_installed; .* 'igd-anomaly\[export\]'"
    ):
        export(detector, tmp_path / "model.onnx")


ROOT = Path(__file__).parents[2]


def dependencies(project: Path) -> set[str]:
    (listed,) = re.findall(
        r"^dependencies = \[\n(.*?)^\]",
        project.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    return set(re.findall(r'"(.+?)"', listed))


def test_the_runtime_distribution_needs_part_of_what_igd_needs() -> None:
    runtime = dependencies(ROOT / "packaging" / "runtime" / "pyproject.toml")
    assert runtime < dependencies(ROOT / "pyproject.toml")
    names = {re.split("[>=<]", each)[0] for each in runtime}
    assert names == {"numpy", "onnxruntime", "pillow", "tqdm"}


WITHOUT = (
    "torch",
    "sklearn",
    "scipy",
    "onnx",
    "onnxscript",
    "safetensors",
    "lightning_fabric",
    "jinja2",
    "matplotlib",
    "shtab",
)


def test_runs_where_only_numpy_pillow_and_onnx_runtime_are(
    small: tuple[Path, Path], tmp_path: Path
) -> None:
    """In a process that refuses to import anything else, by the library and by the command line."""
    Image.fromarray(images("long", 1)[0]).save(tmp_path / "image.png")
    refused = "".join(f"sys.modules[{name!r}] = None; " for name in WITHOUT)
    library = (
        f"from igd import Runtime; "
        f"print(Runtime.load({str(small[1])!r}).predict('image.png').score)"
    )
    arguments = ["predict", str(small[1]), "image.png", "--out", "out", "--quiet"]
    command = f"from igd.cli import main; sys.exit(main({arguments!r}))"
    training = "from igd.cli import main; sys.exit(main(['train', '.', '-o', 'no.igd']) - 2)"
    expected = IGD.load(small[0]).predict(tmp_path / "image.png").score
    for program in (library, command, training):
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; {refused}{program}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if program is library:
            assert float(done.stdout) == pytest.approx(expected, abs=1e-5)
        if program is training:
            assert "pip install igd-anomaly brings it" in done.stderr
    assert "image.png" in (tmp_path / "out" / "scores.csv").read_text()


@pytest.mark.parametrize("left", [0, 100, 100_000])
def test_a_damaged_file_is_refused(small: tuple[Path, Path], tmp_path: Path, left: int) -> None:
    (tmp_path / "cut.onnx").write_bytes(small[1].read_bytes()[:left])
    with pytest.raises(UserError, match=r"cut\.onnx: "):
        Runtime.load(tmp_path / "cut.onnx")


def changed(exported: Path, target: Path, change: dict[str, object]) -> None:
    """The same model with another description, and the checksum that goes with it."""
    model = onnx.load(exported)
    (header,) = (entry.value for entry in model.metadata_props if entry.key == HEADER)
    del model.metadata_props[:]
    model.metadata_props.add(key=HEADER, value=json.dumps({**json.loads(header), **change}))
    target.write_bytes(with_checksum(model.SerializeToString()))


@pytest.mark.parametrize(
    "change",
    [
        {"channels": 2},
        {"false_alarm_rate": 1e-9},
        {"calibration_scores": []},
        {"calibration_peaks": [float("nan")] * 12},
        {"geometry": {"side": 96, "fit": "squeeze"}},
        {"geometry": {"side": 32, "fit": "resize"}},
        {"usual_heat": None},
        {"smallest_side": [16]},
        {"provenance": "somebody"},
        {"geometry": {"side": 96, "fit": "resize", "roi": 0}},
        {"geometry": {"side": 96, "fit": "resize", "align": ""}},
        {"geometry": {"side": 96, "fit": "resize", "roi": {"box": [0, 0, 9, 9], "frame": "x"}}},
        {"tiling": {"side": 96, "overlap": 1e99, "size": None}},
    ],
)
def test_an_impossible_description_is_refused(
    small: tuple[Path, Path], tmp_path: Path, change: dict[str, object]
) -> None:
    changed(small[1], tmp_path / "odd.onnx", change)
    with pytest.raises(UserError, match=r"odd\.onnx: not a model exported by igd, or damaged"):
        Runtime.load(tmp_path / "odd.onnx")


def test_a_graph_of_someone_else_is_refused(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y")
    ]
    graph = onnx.helper.make_graph([node], "theirs", ends[:1], ends[1:])
    onnx.save(
        onnx.helper.make_model(
            graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 18)]
        ),
        tmp_path / "theirs.onnx",
    )
    with pytest.raises(UserError, match="not a model exported by igd"):
        Runtime.load(tmp_path / "theirs.onnx")
    with pytest.raises(UserError, match="no such file"):
        Runtime.load(tmp_path / "none.onnx")


def test_flipped_bits_are_noticed(
    small: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, rng, damaged = small[1].read_bytes(), np.random.default_rng(0), tmp_path / "damaged.onnx"
    for place in rng.integers(0, 8 * len(whole), 100):
        flipped = np.frombuffer(whole, np.uint8).copy()
        flipped[place // 8] ^= 1 << place % 8
        damaged.write_bytes(flipped.tobytes())
        with pytest.raises(UserError, match=r"damaged\.onnx: "):
            Runtime.load(damaged)
    assert main(["verify", str(small[1]), str(damaged), "--json"]) == 2
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["is_whole"]
    assert first["has_checksum"]
    assert first["images"] == 1
    assert not second["is_whole"]


def test_a_file_of_before_loads_with_a_note(small: tuple[Path, Path], tmp_path: Path) -> None:
    changed(small[1], tmp_path / "old.onnx", {"format": 1})
    contents = (tmp_path / "old.onnx").read_bytes()
    (tmp_path / "old.onnx").write_bytes(contents[: -len(with_checksum(b""))])
    with pytest.warns(ModelWarning, match="made before exports had a checksum"):
        Runtime.load(tmp_path / "old.onnx")
    changed(small[1], tmp_path / "new.onnx", {})
    contents = (tmp_path / "new.onnx").read_bytes()
    (tmp_path / "new.onnx").write_bytes(contents[: -len(with_checksum(b""))])
    with pytest.raises(UserError, match="its checksum is missing"):
        Runtime.load(tmp_path / "new.onnx")


def test_an_exported_model_is_evaluated_from_the_command_line(
    small: tuple[Path, Path], category: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for model in small:
        assert main(["evaluate", str(model), str(category), "--json", "--quiet"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    ours, theirs = told
    assert theirs["image_auroc"] == pytest.approx(ours["image_auroc"], abs=0.02)
    assert (theirs["misses"], theirs["backbone"]) == (ours["misses"], ours["backbone"])
