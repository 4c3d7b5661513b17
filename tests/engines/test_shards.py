"""Shards and their manifest: what counts, what a second call does, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from igd.engines.shards import MANIFEST, ScoredShard, Shard, ShardFolder
from igd.errors import UserError

ORIGIN = {"model": "abc", "max_false_alarms": 0.05}
NAMES = [f"{number:03d}.png" for number in range(100)]


def row(name: str) -> dict[str, Any]:
    region = {"x": 1, "y": 2, "width": 3, "height": 4, "area": 12, "peak": 0.9, "p_value": 0.01}
    values = {"score": 0.7, "p_value": 0.01, "is_anomalous": True, "regions": [region]}
    return {"path": name, **values, "error": None}


def scored(shard: Shard) -> ScoredShard:
    return ScoredShard(shard.number, [row(name) for name in shard.names], {}, "here:1", False, 0.1)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_second_call_has_what_is_missing(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pyarrow")
    first = ShardFolder(tmp_path, kind, ORIGIN)
    planned = first.plan(NAMES, batch=1)
    assert [name for shard in planned for name in shard.names] == NAMES
    for shard in (planned[3], planned[0]):  # in any order
        first.write(scored(shard))
    again = ShardFolder(tmp_path, kind, ORIGIN, resume=True)
    assert again.tally.images == again.tally.alarms == 32
    left = again.plan(NAMES, batch=1)
    assert [shard.names for shard in left] == [planned[n].names for n in (1, 2, 4, 5, 6)]
    assert not {shard.number for shard in left} & {0, 1}  # and no file is written twice
    for shard in left:
        again.write(scored(shard))
    assert ShardFolder(tmp_path, kind, ORIGIN, resume=True).plan(NAMES, batch=1) == []


def test_images_that_came_later_are_scored_alone(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path, "jsonl", ORIGIN)
    for shard in folder.plan(NAMES, batch=4):
        folder.write(scored(shard))
    more = ["000-new.png", *NAMES, "zzz.png"]
    left = ShardFolder(tmp_path, "jsonl", ORIGIN, resume=True).plan(sorted(more), batch=4)
    assert [name for shard in left for name in shard.names] == ["000-new.png", "zzz.png"]


def test_a_shard_counts_when_the_manifest_has_it(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path, "jsonl", ORIGIN)
    first, second, *_ = folder.plan(NAMES, batch=1)
    folder.write(scored(first))
    folder.write(scored(second))
    manifest = tmp_path / MANIFEST
    manifest.write_text(manifest.read_text()[:-10])  # as a crash leaves it
    again = ShardFolder(tmp_path, "jsonl", ORIGIN, resume=True)
    assert again.tally.images == len(first.names)
    assert again.plan(NAMES, batch=1)[0].names == second.names


def test_a_path_of_any_bytes_has_its_row(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    odd = "part-\udcff.png"
    for kind in ("jsonl", "parquet"):
        folder = ShardFolder(tmp_path / kind, kind, ORIGIN)
        folder.write(scored(Shard(0, [odd])))
        again = ShardFolder(tmp_path / kind, kind, ORIGIN, resume=True)
        assert again.plan([odd], batch=1) == []


def test_what_is_refused(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path, "jsonl", ORIGIN)
    folder.write(scored(folder.plan(NAMES, batch=1)[0]))
    with pytest.raises(UserError, match="--resume"):
        ShardFolder(tmp_path, "jsonl", ORIGIN)
    for kind, origin in (("jsonl", {**ORIGIN, "model": "other"}), ("parquet", ORIGIN)):
        with pytest.raises(UserError, match="another model or other flags"):
            ShardFolder(tmp_path, kind, origin, resume=True)
    manifest = tmp_path / MANIFEST
    for line, match in (
        ({"number": 0, "shard": "../elsewhere.jsonl"}, "missing"),
        ({"number": 0, "shard": "scores-000009.jsonl"}, "missing"),
        ({}, "damaged"),
    ):
        manifest.write_text(json.dumps(line) + "\n")
        with pytest.raises(UserError, match=match):
            ShardFolder(tmp_path, "jsonl", ORIGIN, resume=True)
    assert ShardFolder(tmp_path, "jsonl", ORIGIN, overwrite=True).tally.images == 0
    assert not list(tmp_path.glob("scores-*"))
