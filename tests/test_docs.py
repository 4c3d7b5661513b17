"""Every command and snippet of the documentation runs as printed."""

import asyncio
import importlib
import importlib.util
import json
import re
import shlex
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import spotted, stripes, write_images

from igd.cli import COMMANDS, _parser, main
from igd.deploy.server import lifecycle
from igd.pretraining import contrastive, distillation, rotation
from igd.scales import recipes
from igd.scales.scale_settings import AutoEncoderSettings, ScaleSettings
from igd.training import plan

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FROZEN = ("frozen_small", "frozen_large")


def shortened(scale: ScaleSettings) -> ScaleSettings:
    """The same scale with networks and a training that take no time."""
    if not isinstance(scale, AutoEncoderSettings):
        return scale
    return replace(scale, width=4, training=replace(scale.training, steps=3))


def place(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def script(path: Path) -> ModuleType:
    """A program of the project that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.fixture
def workplace(tmp_path: Path, category: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders that the pages speak of, recipes of a few steps, and smaller squares for large
    images: the commands stay as they are.
    """
    write_images(tmp_path / "parts" / "good", stripes(30))
    write_images(tmp_path / "parts" / "relit", stripes(30, seed=2))
    write_images(tmp_path / "photos" / "good", stripes(3, side=300))
    for name, seed in (("good", 3), ("relit", 4)):
        write_images(tmp_path / "plates" / name, stripes(10, 96, seed, colour=True))
    write_images(tmp_path / "parts" / "new", spotted(stripes(4, seed=1)))
    for name in ("bottle", "labelled", "scans"):
        (tmp_path / name).symlink_to(category)
    write_data_sets(tmp_path, category)
    (own,) = (
        block
        for block in blocks(ROOT / "docs" / "extending.md", "python")
        if "class MeanImage" in block
    )
    (tmp_path / "mean_image.py").write_text(own)
    short = {
        name: replace(
            recipe,
            **{
                which: tuple(map(shortened, getattr(recipe, which)))
                for which in ("small", "large", *FROZEN)
            },
        )
        for name, recipe in recipes.RECIPES.items()
    }
    monkeypatch.setattr(recipes, "RECIPES", short)
    monkeypatch.setattr(plan, "LARGE_SIDE", 96)
    for module, name in (
        *((contrastive, each) for each in ("FAST", "FAST_ROTATED")),
        *((each, "FAST") for each in (distillation, rotation)),
    ):
        quick = replace(getattr(module, name), steps=2, batch_size=4)
        monkeypatch.setattr(module, name, quick)
    listen = lifecycle.listen
    monkeypatch.setattr(lifecycle, "listen", lambda host, port: listen(host, 0))
    monkeypatch.setattr(lifecycle.DrainingServer, "main_loop", until_loaded)
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def until_loaded(server: lifecycle.DrainingServer) -> None:
    """A server that ends when it is ready."""
    while server.service.state == "loading":
        await asyncio.sleep(0.01)


def write_data_sets(folder: Path, category: Path) -> None:
    """Lists of images and arrays of two classes, as docs/data.md has them."""
    shutil.copytree(category, folder / "listed")
    images = sorted(folder.glob("listed/t*/*/*.png"))
    rows = [f"{path.relative_to(folder)},{path.parent.name},{path.parts[-3]}" for path in images]
    (folder / "parts.csv").write_text("\n".join(["path,label,split", *rows]))
    patients = [f"{row},{number // 2}" for number, row in enumerate(rows)]
    (folder / "scans.csv").write_text("\n".join(["path,label,split,patient", *patients]))
    train, test = (
        np.concatenate([stripes(20, seed=seed), spotted(stripes(20, seed=seed))]) for seed in (1, 2)
    )
    classes = np.repeat([3, 8], 20)
    np.savez(folder / "mnist.npz", x_train=train, y_train=classes, x_test=test, y_test=classes)


MADE: dict[tuple[str, ...], bytes] = {}  # files of commands that ran, by command and input


def run(words: list[str]) -> int:
    """Run a command. Eight pages begin with the same training: what ran once, on the same images
    or model, is not run again, and its file is there.
    """
    if words[1] not in ("train", "export"):
        return main(words[1:])
    given = Path(words[2])
    made = Path(words[words.index("-o") + 1] if words[1] == "train" else words[3])
    key = (*words, sha256(given.read_bytes()).hexdigest() if given.is_file() else "")
    if key in MADE:
        made.write_bytes(MADE[key])
        return 0
    code = main(words[1:])
    MADE[key] = made.read_bytes()
    return code


@pytest.mark.xdist_group("docs")
@pytest.mark.usefixtures("_own_names")
@pytest.mark.filterwarnings("ignore:.*model:")
@pytest.mark.parametrize("page", PAGES, ids=place)
def test_commands_and_snippets(page: Path, workplace: Path) -> None:
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "igd":
                assert run(words) == 0, line
            else:
                assert not words or words[0] in ("make", "pip"), (
                    f"{line}: this test does not run it"
                )
    for snippet in blocks(page, "python"):
        exec(snippet, {})


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for page in (*PAGES, ROOT / "CONTRIBUTING.md")
        for name in re.findall(r"^make (\w+)", page.read_text(), re.MULTILINE)
    }
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=place)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`([\w/]+/\w+\.py)[`:]", page.read_text(encoding="utf-8"))
    there = [any((ROOT / top / name).is_file() for top in ("", "src/igd")) for name in named]
    assert all(there), [name for name, found in zip(named, there, strict=True) if not found]


def test_what_stands_beside_an_equation_exists() -> None:
    """In the module that defines it, as `method.md` says `module.name`."""
    table = (ROOT / "docs" / "method.md").read_text(encoding="utf-8").split("\n\n")[2]
    named = re.findall(r"`(\w+)\.(\w+)`", table)
    assert len(named) > 7
    for module, name in named:
        there = getattr(importlib.import_module(f"igd.method.{module}"), name)
        assert there.__module__ == f"igd.method.{module}", (module, name)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=place)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_tables_and_pictures_are_made_from_the_results() -> None:
    tables, results = script(ROOT / "benchmarks" / "tables.py"), ROOT / "docs" / "results"
    made = {"README.md": tables.page(results)}
    made |= tables.pictures(tables.read(results))
    for name, text in made.items():
        kept = (results / name).read_text(encoding="utf-8")
        assert kept == text, f"{name}: run: python benchmarks/tables.py"


def test_the_page_of_commands_is_what_the_parsers_say() -> None:
    made = script(ROOT / "docs" / "commands.py").page()
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == made, (
        "run: python docs/commands.py"
    )
    for command in (
        *(module.__name__.rpartition(".")[2].removesuffix("_command") for module in COMMANDS),
        "benchmark run",
        "weights get",
    ):
        assert f"\n## igd {command}" in made


def test_examples_of_help_are_understood_and_their_commands_run_on_some_page() -> None:
    """The other pages run every command; to run the examples as well would take minutes."""
    run = "\n".join(block for page in PAGES for block in blocks(page, "sh"))
    examples = "".join(blocks(ROOT / "docs" / "commands.md", "console")).splitlines()
    assert len(examples) >= 15
    for words in (line.split() for line in examples if line.startswith("igd ")):
        until = words.index(">") if ">" in words else None
        _parser().parse_args(words[1:until])
        deep = 3 if words[1] in ("pretrain", "weights", "benchmark") else 2
        command = " ".join(words[:deep])
        if command not in (
            "igd demo",
            "igd weights get",
            "igd completion",
        ):  # has a test of its own; the network; a shell
            assert re.search(rf"^{command}\b", run, re.MULTILINE), f"no page runs {command}"


@pytest.mark.parametrize(
    ("name", "function"), [("rooms", "rooms"), ("flow", "flow"), ("anomaly", "picture")]
)
def test_drawings_are_what_their_scripts_draw(
    name: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "pictures")
    drawn = getattr(script(ROOT / "docs" / "pictures" / f"{name}.py"), function)()
    kept = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert kept == drawn, f"run: python docs/pictures/{name}.py"
    ElementTree.fromstring(drawn)


def test_every_room_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "pictures")
    listed = {
        module
        for layer in script(ROOT / "docs" / "pictures" / "rooms.py").layers()
        for module in layer
    }
    there = {
        f"igd.{path.stem}"
        for path in (ROOT / "src" / "igd").iterdir()
        if not path.name.startswith(("_", "py."))
    }
    assert listed == there


def test_the_demo_finds_its_defects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo"), "--json", "--quiet"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["image_auroc"] > 0.85
    assert metrics["pixel_auroc"] > 0.95
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    assert (tmp_path / "demo" / "bricks.igd").exists()
