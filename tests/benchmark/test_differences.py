"""What a term adds, and how far that could be chance."""

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


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Groups that differ, and values that differ within them: both kinds of chance count."""
    rng, covered = np.random.default_rng(1), 0
    for _ in range(200):
        centres = rng.normal(1.0, 1.0, size=20)
        groups = [rng.normal(centre, 1.0, size=3).tolist() for centre in centres]
        low, high = interval(groups, draws=400)
        covered += low <= 1.0 <= high
    assert 180 <= covered <= 200


def test_chance_among_seeds_alone_is_too_little() -> None:
    """Two classes that disagree leave the sign open, however much their seeds agree."""
    low, high = interval([[0.1, 0.1, 0.1], [-0.1, -0.1, -0.1]])
    assert (low, high) == pytest.approx((-0.1, 0.1))


def test_methods_are_compared_run_by_run() -> None:
    """The same classes and seeds; a run that only one of them has does not count."""
    records = [
        record(0.90, "0", 0, "rec+gac"),
        record(0.80, "0", 1, "rec+gac"),
        record(0.70, "1", 0, "rec+gac"),
        record(0.10, "1", 7, "rec+gac"),
        record(0.92, "0", 0, "igd"),
        record(0.82, "0", 1, "igd"),
        record(0.69, "1", 0, "igd"),
        record(0.99, "2", 0, "igd"),
        record(0.60, "0", 0, "igd", training_share=0.2),
    ]
    table = differences(records)
    assert table is not None
    ((name, *cells),) = table.rows
    assert name.text == "igd, fast, scratch - rec+gac"
    full, small, contaminated = (cell.text for cell in cells)
    assert full.startswith("+0.005 (-0.010 to +0.020)")  # of the classes' means, +0.02 and -0.01
    assert full.endswith("2 of 3")
    assert (small, contaminated) == ("-", "-")


def test_methods_that_were_run_otherwise_are_not_compared() -> None:
    ours = [record(0.9, "0", seed, "igd", pretrain="scratch") for seed in (0, 1)]
    theirs = [record(0.8, "0", seed, "rec+gac", pretrain="contrastive") for seed in (0, 1)]
    assert differences(ours + theirs) is None


def test_one_seed_has_no_interval() -> None:
    records = [record(0.9, "0", 0, "igd"), record(0.8, "0", 0, "rec+gac")]
    assert differences(records) is None
