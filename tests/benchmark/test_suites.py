"""Grids of runs, and the keys that runs are known by."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import igd
from igd import UserError
from igd.benchmark.run import RESULT_CODE, Protocol, Run, code_digest, digest, made_by
from igd.benchmark.suites import METHODS, VARIANTS, find_suite, plan
from igd.scales import recipes

SETTINGS = {"recipe": "fast", "pretrain": "scratch"}


def test_variants_are_the_paper_s() -> None:
    shares = {
        name: [(one.training_share, one.contamination) for one in each.protocols]
        for name, each in VARIANTS.items()
    }
    assert shares == {
        "standard": [(1.0, 0.0)],
        "small": [(0.2, 0.0), (0.6, 0.0), (1.0, 0.0)],
        "contaminated": [(1.0, 0.01), (1.0, 0.05), (1.0, 0.1)],
        "ablation": [(1.0, 0.0), (0.2, 0.0), (1.0, 0.1)],
    }
    assert {name for each in VARIANTS.values() for name in each.methods} <= METHODS.keys()


def test_a_grid_fills_a_whole_table_before_the_next_seed(digits: Path) -> None:
    runs = plan("mnist:small", digits, SETTINGS, ["0", "1"], ["dsvdd", "igd"], [4, 5])
    assert len(runs) == 2 * 2 * 3 * 2
    assert [run.seed for run in runs] == [4] * 12 + [5] * 12
    assert {run.normal for run in runs[:12]} == {"0", "1"}


def test_runs_of_two_variants_are_shared(digits: Path) -> None:
    """100 % of the training set is the standard protocol: nothing is measured twice."""
    standard = {run.key for run in plan("mnist", digits, SETTINGS, ["0"], ["igd"])}
    small = {run.key for run in plan("mnist:small", digits, SETTINGS, ["0"], ["igd"])}
    assert standard < small


@pytest.mark.parametrize(
    ("suite", "method", "scales"),
    [
        ("mnist", "mse", "by position, embedding here.*--scales global\\)"),
        ("mvtec", "dsvdd", "by position, bank, whole here.*--scales global,local\\)"),
    ],
)
def test_methods_that_would_make_no_difference_are_refused_before_the_first_run(
    digits: Path, categories: Path, suite: str, method: str, scales: str
) -> None:
    """Recipe fast scores by closed forms, which are the same for all objectives."""
    path = digits if suite == "mnist" else categories
    with pytest.raises(UserError, match=f"objective='{method}' has no effect: .* {scales}"):
        plan(suite, path, {"recipe": "fast"}, None, ["igd", method])
    trained = {"recipe": "fast", "scales": ["global"]}
    assert len(plan(suite, path, trained, None, [method]))


def test_settings_that_some_size_of_images_allows_are_left_to_the_run(categories: Path) -> None:
    assert len(plan("mvtec", categories, {"recipe": "fast", "scales": ["embedding", "position"]}))


def test_a_key_is_the_same_in_every_process(digits: Path) -> None:
    (run,) = plan("mnist", digits, SETTINGS, ["0"], ["ocsvm"])
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    code = (
        "import json, sys; from igd.benchmark.run import Run; "
        "print(Run.from_json(json.loads(sys.argv[1])).key)"
    )
    again = subprocess.run(
        [sys.executable, "-c", code, json.dumps(run.to_json())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.strip() == run.key


def test_whatever_changes_a_result_changes_the_key(
    digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(suite: str = "mnist", method: str = "igd", seed: int = 0, **settings: object) -> str:
        return plan(suite, digits, {**SETTINGS, **settings}, ["0"], [method], [seed])[0].key

    first = key()
    assert (
        len(
            {
                first,
                key(seed=1),
                key(method="dsvdd"),
                key("mnist:small"),
                key(steps=7),
                key(method="ocsvm"),
            }
        )
        == 6
    )
    # Which a support vector machine does not have.
    assert key(method="ocsvm") == key(method="ocsvm", steps=7)
    fast = recipes.RECIPES["fast"]
    monkeypatch.setitem(
        recipes.RECIPES, "fast", replace(fast, small=(replace(fast.small[0], width=17),))
    )
    assert key() != first  # the same name, other numbers


def test_a_change_of_code_is_another_run(digits: Path, tmp_path: Path) -> None:
    package = Path(igd.__file__).parent
    assert all((package / name).exists() for name in RESULT_CODE)
    (run,) = plan("mnist", digits, SETTINGS, ["0"], ["ocsvm"])
    assert run.made_by == made_by()
    assert code_digest(package) in run.made_by
    assert replace(run, made_by="igd 0.1.0, code 0123").key != run.key
    shutil.copytree(package, tmp_path / "igd", ignore=shutil.ignore_patterns("__pycache__"))
    assert code_digest(tmp_path / "igd") == code_digest(package)
    printing = tmp_path / "igd" / "benchmark" / "result_tables.py"
    printing.write_text(printing.read_text() + "# changed\n")
    assert code_digest(tmp_path / "igd") == code_digest(package)  # results are not made by this
    method = tmp_path / "igd" / "method" / "em.py"
    method.write_text(method.read_text() + "# changed\n")
    assert code_digest(tmp_path / "igd") != code_digest(package)


def test_a_run_of_an_older_store_keeps_its_key() -> None:
    """As one of the published results has it, before runs had a digest of the code."""
    exported = Path(__file__).parents[2] / "docs" / "results" / "mvtec-imagenet.json"
    stored = json.loads(exported.read_text())["runs"][0]["run"]
    run = Run.from_json(stored)
    assert (run.to_json(), run.config_hash) == (stored, stored["meaning"])
    assert run.key == digest(stored)


def test_a_run_says_what_it_is(digits: Path) -> None:
    (run, *_) = plan("mnist:contaminated", digits, SETTINGS, ["0"], ["igd"], [2])
    assert run.described == "mnist 0, igd, seed 2, 1% of the anomalies in training"
    assert run.protocol == Protocol(contamination=0.01)


def test_unknown_variants_and_seeds(digits: Path) -> None:
    with pytest.raises(
        UserError, match="no variant of mnist is called 'big'; there are standard, small"
    ):
        find_suite("mnist:big")
    with pytest.raises(UserError, match="seed is -1; it must lie between 0 and"):
        plan("mnist", digits, SETTINGS, seeds=[0, -1])
