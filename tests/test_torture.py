"""The campaign in small: a few cases of each part, and what its counts mean."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_docs import ROOT

from igd import IGD

pytestmark = pytest.mark.xdist_group("torture")


@pytest.fixture(scope="module")
def part() -> Iterator[Any]:
    """The modules of benchmarks/torture by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        patch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT / 'benchmarks'}")

        def module(name: str) -> ModuleType:
            return importlib.import_module(f"torture.{name}")

        yield module


@pytest.fixture(scope="module")
def worker(part: Any) -> Iterator[Any]:
    with part("worker").Worker() as started:
        yield started


@pytest.fixture(scope="module")
def materials(part: Any, fitted: IGD, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same as the campaign's, with the model that the tests share; it is not exported."""
    made = part("materials")
    folder = tmp_path_factory.mktemp("torture")
    fitted.save(folder / "tiny.igd")
    images = made.make_images(folder / "images", 6)
    return made.Materials(folder, folder / "tiny.igd", folder / "tiny.onnx", images)


def test_cases_come_from_seed_and_number(part: Any) -> None:
    mutations, originals = part("mutations"), part("materials").encoded()
    for number in range(40):
        suffix, contents = originals[number % len(originals)]
        first, again, other = (
            mutations.changed_image(suffix, contents, mutations.chance(seed, number))
            for seed in (0, 0, 1)
        )
        assert first == again
        assert first != other


def test_damaged_images(part: Any, worker: Any, materials: Any) -> None:
    damaged, originals = part("damaged_images"), part("materials").encoded()
    row = part("tally").Tally("images")
    folder = materials.folder / "damaged"
    job = {"do": "predict", "model": str(materials.igd)}
    whole = []
    for number, (suffix, contents) in enumerate(originals):
        path = materials.folder / f"whole-{number}.{suffix}"
        path.write_bytes(contents)
        whole.append(worker.ask({**job, "image": str(path)}))
    cases = damaged.make_cases(folder, originals, range(60), seed=3)
    for case in cases:
        answer = worker.ask({**job, "image": str(case.path)})
        damaged.count_answer(row, case, answer, whole[case.undamaged], None, damaged.SAME)
    found = damaged.by_command(worker, materials.igd, folder, row)
    assert set(found) == {str(case.path) for case in cases}
    assert (row.wrong, row.crashed, row.hung) == (0, 0, 0), row.examples
    assert row.refused > 20
    assert row.survived > 5


def test_damaged_and_forged_models(part: Any, worker: Any, materials: Any) -> None:
    damaged = part("damaged_models")
    image = str(materials.images / "000.png")
    whole = worker.ask({"do": "load", "model": str(materials.igd), "image": image})
    for forged in (False, True):
        row = part("tally").Tally("models")
        for number in range(8):
            target = materials.folder / "damaged.igd"
            damaged.make(materials.igd, target, forged, 5, number)
            answer = worker.ask({"do": "load", "model": str(target), "image": image})
            damaged.count_answer(row, str(number), answer, whole, forged)
        assert (row.wrong, row.crashed, row.hung) == (0, 0, 0), row.examples
        assert row.refused >= 2


def test_a_kill_and_a_failing_write(part: Any, worker: Any, materials: Any, tmp_path: Path) -> None:
    kills, disk = part("kills"), part("failing_disk")
    (predict,) = (
        each for each in part("commands_on_files").writers(materials) if each.name == "predict"
    )
    (tmp_path / "whole").mkdir()
    undisturbed, seconds = kills.run_whole(worker, predict, tmp_path / "whole")
    row = part("tally").Tally("predict")
    for number, share in enumerate((0.3, 0.8)):
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        kills.kill(worker, predict, folder, share * seconds, False, True, undisturbed, row)
    for limit in (100, 900):
        folder = tmp_path / f"full{limit}"
        folder.mkdir()
        disk.fill(worker, predict, folder, limit, undisturbed, row)
    assert (row.wrong, row.crashed, row.hung) == (0, 0, 0), row.examples
    assert row.tried == 4


def test_odd_command_lines(part: Any, worker: Any, materials: Any) -> None:
    shutil.copy(materials.igd, materials.onnx)  # not a graph, which is one more odd thing
    row = part("odd_commands").attempts(worker, materials, 8, seed=1)
    assert (row.wrong, row.crashed, row.hung) == (0, 0, 0), row.examples
    assert row.tried == 8


def test_wrong_answers_are_counted_as_such(part: Any, tmp_path: Path) -> None:
    """The campaign can fail: it notices a changed score, a traceback and a hang."""
    damaged, tally = part("damaged_images"), part("tally")
    case = damaged.Case(tmp_path / "x.png", "x.png flip", 0, noticeable=True)
    whole = {"score": 0.2}
    for answer, outcome in (
        ({"score": 0.2}, "survived"),
        ({"score": 0.3}, "wrong"),
        ({"score": float("nan")}, "wrong"),
        ({"refused": "why"}, "refused"),
        ({"crashed": "why"}, "crashed"),
        ({"hung": "why"}, "hung"),
    ):
        row = tally.Tally("x")
        damaged.count_answer(row, case, answer, whole, None, damaged.SAME)
        assert getattr(row, outcome) == 1 == row.tried, (answer, row)
        assert bool(row.examples) == (outcome in ("wrong", "crashed", "hung"))
    row = tally.Tally("x")
    damaged.count_answer(row, case, {"score": 0.2}, whole, {"refused": "why"}, damaged.SAME)
    assert row.wrong == 1  # the library refused what this entrance accepted


def test_the_worker_survives_what_it_runs(worker: Any, tmp_path: Path) -> None:
    job = {"do": "command", "cwd": str(tmp_path)}
    assert worker.ask({**job, "command": ["--version"]})["code"] == 0
    assert worker.ask({**job, "command": ["doctor"], "kill_after": 0})["code"] == -9
    assert worker.ask({**job, "command": ["no-such"]})["code"] == 2


def test_parts_are_kept_side_by_side(part: Any, tmp_path: Path) -> None:
    campaign, tally = part("campaign"), part("tally")
    target = tmp_path / "torture.json"
    for name in ("server", "images", "server"):
        row = tally.Tally(name)
        row.add("refused")
        campaign.keep(target, name, [row], seed=0)
    kept = json.loads(target.read_text())["torture"]
    assert list(kept) == ["images", "server"]
    assert kept["server"][0]["tried"] == 1


def test_every_part_has_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "PARTS := images models kills disk server cli\n" in makefile
