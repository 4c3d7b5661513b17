"""The store: what is kept, what is replaced, and files that are no store."""

import sqlite3
from pathlib import Path

import pytest

from igd import UserError
from igd.benchmark.run import Run
from igd.benchmark.run_store import RunStore

RUN = Run("mnist", "copy", "0", "igd", {"recipe": "fast"}, "config", 0)


def test_what_is_added_is_there_for_the_next_process(tmp_path: Path) -> None:
    RunStore(tmp_path / "a.sqlite", create=True).add(RUN, {"metrics": {"image_auroc": 0.9}})
    (record,) = RunStore(tmp_path / "a.sqlite").records()
    assert (record.run, record.result, record.error) == (
        RUN,
        {"metrics": {"image_auroc": 0.9}},
        None,
    )


def test_a_failure_is_not_finished_and_gives_way(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "a.sqlite", create=True)
    store.add(RUN, None, "out of memory")
    assert store.finished() == {}
    assert [record.error for record in store.records()] == ["out of memory"]
    store.add(RUN, {"metrics": {}})
    assert list(store.finished()) == [RUN.key]
    assert len(store.records()) == 1


def test_commands_are_kept_once(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "a.sqlite", create=True)
    for command in (
        "igd benchmark run mnist",
        "igd benchmark run cifar10",
        "igd benchmark run mnist",
    ):
        store.add_command(command)
    assert store.commands() == ["igd benchmark run mnist", "igd benchmark run cifar10"]


def test_two_benchmarks_do_not_share_a_store(tmp_path: Path) -> None:
    one, other = (RunStore(tmp_path / "a.sqlite", create=True) for _ in range(2))
    with one.alone():
        assert other.records() == []  # reading is free
        with (
            pytest.raises(UserError, match=r"a\.sqlite: another benchmark is writing there"),
            other.alone(),
        ):
            pass
    with other.alone():
        pass


def test_files_that_are_no_store(tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"none\.sqlite: no such file; make it with: igd benchmark run SUITE --store",
    ):
        RunStore(tmp_path / "none.sqlite")
    with pytest.raises(UserError, match=r"there is no folder .*absent; create it first"):
        RunStore(tmp_path / "absent" / "a.sqlite", create=True)
    (tmp_path / "text").write_text(
        "not a database, and long enough to be asked what it is instead" * 20
    )
    with sqlite3.connect(tmp_path / "foreign.sqlite") as foreign:
        foreign.execute("create table song (title text)")
    for name in ("text", "foreign.sqlite"):
        for create in (True, False):
            with pytest.raises(UserError, match=f"{name}: not a store of benchmark results"):
                RunStore(tmp_path / name, create=create)
    assert foreign.execute("select name from sqlite_master").fetchall() == [("song",)]
    newer = RunStore(tmp_path / "newer.sqlite", create=True)
    with newer.database:
        newer.database.execute("update about set format = 2")
    with pytest.raises(UserError, match="made by a newer igd"):
        RunStore(tmp_path / "newer.sqlite")
