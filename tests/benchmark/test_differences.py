"""What a term adds, and how far that could be chance."""

from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from measured import record

from igd.benchmark.comparison import tables_of
from igd.benchmark.differences import interval
from igd.benchmark.result_tables import ResultTable
from igd.benchmark.run_store import Record


def differences(records: list[Record]) -> ResultTable | None:
    found = [each for each in tables_of(records) if "what each term adds" in each.title]
    return found[0] if found else None


def rows(records: list[Record]) -> dict[str, list[str]]:
    table = differences(records)
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows} if table else {}


@pytest.mark.parametrize("classes", [2, 4, 15])
def test_an_interval_covers_the_truth_as_often_as_it_says(classes: int) -> None:
    """However few the classes: no less often, and no more, than in 95 of 100 cases."""
    rng = np.random.default_rng(classes)
    found = [interval(rng.normal(1.0, 2.0, size=classes).tolist()) for _ in range(2000)]
    assert mean(float(low <= 1.0 <= high) for low, high in found) == pytest.approx(0.95, abs=0.015)


def test_methods_are_compared_run_by_run() -> None:
    """The same classes and seeds; a run that only one of them has does not count."""
    records = [
        record(0.90, "0", 0, "rec+gac"),
        record(0.80, "0", 1, "rec+gac"),
        record(0.70, "1", 0, "rec+gac"),
        record(0.10, "1", 7, "rec+gac"),
        record(0.91, "0", 0, "igd"),
        record(0.83, "0", 1, "igd"),
        record(0.69, "1", 0, "igd"),
        record(0.99, "2", 0, "igd"),
        record(0.60, "0", 0, "igd", training_share=0.2),
        record(0.50, "0", 0, "rec+gac", training_share=0.2),
    ]
    ((name, cells),) = rows(records).items()
    assert name == "igd, fast, scratch - rec+gac"
    # The classes' means are +0.02 and -0.01: 12.706 is Student's quantile of two.
    spread = 12.706 * 0.015
    assert cells[0] == f"+0.005 ({0.005 - spread:+.3f} to {0.005 + spread:+.3f}), 2 of 3"
    assert cells[1] == "+0.100, 1 of 1"  # one class has no interval
    assert cells[2] == "-"


def test_seeds_of_one_class_say_nothing_about_others() -> None:
    records = [record(0.9, "0", seed, method) for seed in (0, 1) for method in ("igd", "rec+gac")]
    assert differences(records) is None


def test_methods_that_were_run_otherwise_are_not_compared() -> None:
    ours = [record(0.9, normal, method="igd", pretrain="scratch") for normal in "01"]
    theirs = [record(0.8, normal, method="rec+gac", pretrain="contrastive") for normal in "01"]
    assert differences(ours + theirs) is None


def test_nobody_guesses_which_of_two_runs_belongs_to_which() -> None:
    """A recipe was changed and the method run again, the other one before or after that."""
    ours = [record(0.9, normal, method="igd") for normal in "01"]
    theirs = [record(0.8, normal, method="rec+gac") for normal in "01"]
    again = [record(0.7, normal, method="rec+gac", config_hash="new") for normal in "01"]
    assert rows(ours + theirs)
    assert not rows(ours + theirs + again)


def test_methods_of_ones_own_are_compared_within_their_file() -> None:
    def own(value: float, normal: str, method: str, file: str) -> Record:
        made = record(value, normal, method=method)
        return replace(made, run=replace(made.run, method=f"{file}.py:{method}"))

    ours = [own(0.9, normal, "igd", "mine") for normal in "01"]
    mine, others = ([own(0.8, normal, "rec+gac", file) for normal in "01"]
                    for file in ("mine", "other"))  # fmt: skip
    assert list(rows(ours + mine)) == ["igd, fast, scratch - rec+gac"]
    assert not rows(ours + others)


def test_other_files_are_other_images() -> None:
    records = [record(0.9, normal, method="igd") for normal in "01"]
    moved = [record(0.8, normal, method="rec+gac") for normal in "01"]
    other = [replace(each, run=replace(each.run, copy="other")) for each in moved]
    assert rows(records + moved)
    assert not rows(records + other)
