"""Files, patterns and lists of paths, and arguments in the wrong order."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import stripes, write_images

from igd import IGD
from igd.cli import main
from igd.cli.image_arguments import image_paths
from igd.errors import UserError


@pytest.fixture
def model(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_images(tmp_path / "in", stripes(3))


def given(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_patterns_and_names(folder: Path) -> None:
    assert image_paths([f"{folder}/00[01].png"]) == [folder / "000.png", folder / "001.png"]
    assert image_paths([f"{folder.parent}/**/*.png"]) == sorted(folder.iterdir())
    (folder / "a*.png").touch()
    assert image_paths([f"{folder}/a*.png"]) == [folder / "a*.png"]  # what is there comes first
    with pytest.raises(UserError, match="no file matches this pattern"):
        image_paths([f"{folder}/*.tif"])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\0"])
def test_paths_on_standard_input(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, end.join([b"a b.png", b"c/d.png", b""]))
    assert image_paths(["-"]) == [Path("a b.png"), Path("c/d.png")]
    given(monkeypatch, b"\n")
    with pytest.raises(UserError, match="standard input: no paths"):
        image_paths(["-"])


def test_predict_takes_all_of_them(
    model: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given(monkeypatch, f"{folder}/002.png\n".encode())
    words = [f"{folder}/000.png", f"{folder}/00[1].png", "-"]
    assert main(["predict", str(model), *words, "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Path(row["path"]).name for row in rows] == ["000.png", "001.png", "002.png"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["predict", "in", "model.igd"], "model.igd is a model and in a folder; the model comes"),
        (["predict", "in", "in/000.png"], "in: is a folder, and a model file comes first"),
        (["predict", "model.igd", "other.onnx"], "other.onnx: is a model, not an image"),
        (["evaluate", "in", "model.igd"], "first: igd evaluate model.igd in"),
        (["train", "model.igd", "-o", "new.igd"], "model.igd: is a model; igd train takes normal"),
        (["export", "model.onnx", "model.igd"], "the .igd file comes first"),
    ],
)
def test_swapped_arguments(
    words: list[str],
    says: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder.parent)
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


@pytest.mark.parametrize("out", [".", "in", "link"])
@pytest.mark.parametrize(
    ("command", "images"),
    [
        ("watch", ["in"]),
        ("predict", ["in"]),
        ("predict", ["in", "beside"]),
        ("predict", ["in/000.png"]),
        ("predict", ["in/*.png"]),
    ],
)
def test_results_are_not_written_over_the_images(
    command: str,
    images: list[str],
    out: str,
    model: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder.parent)
    write_images(Path("beside"), stripes(1))
    Path("link").symlink_to("in")
    once = ["--once"] if command == "watch" else []
    assert main([command, str(model), *images, "--out", out, *once]) == 2
    assert f"{out}: holds the images; choose a folder beside them" in capsys.readouterr().err
    assert len(list(folder.iterdir())) == 3


def test_results_below_the_images_are_no_images(model: Path, folder: Path) -> None:
    out = folder / "results"
    words = ["predict", str(model), "--quiet", "--out", str(out)]
    assert main([*words, str(folder)]) == 0
    for images in (str(folder), f"{folder}/**/*.png", f"{folder}/*"):
        assert main([*words, images, "--resume"]) == 0
        assert len((out / "scores.csv").read_text().splitlines()) == 4


def test_scores_are_replaced_when_asked(
    model: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", str(model), str(folder), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(words) == 0
    table = (tmp_path / "out" / "scores.csv").read_bytes()
    (folder / "003.png").write_bytes((folder / "000.png").read_bytes())
    assert main(words) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "out" / "scores.csv").read_bytes() == table
    assert main([*words, "--overwrite", "--resume"]) == 2
    assert main([*words, "--overwrite"]) == 0
    assert len((tmp_path / "out" / "scores.csv").read_text().splitlines()) == 5


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "in", "-o", "new.igd"], "needs the package torch, which is not installed; pip"),
        (["predict", "model.igd", "in"], "igd export model.igd model.onnx"),
        (["evaluate", "model.igd", "in"], "model.igd: an .igd file needs the package torch"),
    ],
)
def test_without_pytorch_it_is_said_what_to_install(
    words: list[str], says: str, folder: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}\nfrom igd.cli import main; sys.exit(main({words}))"],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert says in ran.stderr
    assert "pip install igd-anomaly" in ran.stderr


def test_evaluating_an_exported_model_does_without_pytorch() -> None:
    needed = (
        "import igd.evaluation.evaluate, igd.evaluation.report, igd.data.protocols, "
        "igd.data.reading, igd.deploy.loading"
    )
    ran = subprocess.run([sys.executable, "-c", f"{WITHOUT}\n{needed}"], check=False)
    assert ran.returncode == 0
