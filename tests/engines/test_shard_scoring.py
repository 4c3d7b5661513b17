"""Scoring on a cluster of two workers: the same scores, nothing lost, nothing twice, resumable."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import spotted, stripes, write_images

from igd import IGD
from igd.cli import main
from igd.engines import shards

pytest.importorskip("ray", reason="ray is not installed: pip install 'igd-anomaly[ray]'")
pytestmark = pytest.mark.xdist_group("ray")

from igd.engines import scoring  # noqa: E402
from igd.engines.shards import ScoredShard, Shard, ShardFolder  # noqa: E402


@pytest.fixture(scope="module")
def workplace(fitted: IGD, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that needs no PyTorch, which two workers would load for seconds, and images."""
    folder = tmp_path_factory.mktemp("plant")
    fitted.save(folder / "model.igd")
    model = [str(folder / f"model.{suffix}") for suffix in ("igd", "onnx")]
    assert main(["export", *model, "--quiet"]) == 0
    write_images(folder / "new", spotted(stripes(40, seed=7)))
    (folder / "new" / "text.png").write_text("text")
    return folder


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch, workplace: Path) -> None:
    """Shards of four images, scored by two at a time, as if they were large."""
    monkeypatch.setattr(shards, "BATCHES", 2)
    monkeypatch.setattr("igd.inference.predictor.batch_size", lambda side: 2)
    monkeypatch.chdir(workplace)


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """The rows that the manifest has, by path; none is there twice."""
    listed = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    found: list[dict[str, Any]] = []
    for each in listed:
        path = folder / each["shard"]
        if path.suffix == ".parquet":
            from pyarrow import parquet

            found += parquet.read_table(path).to_pylist()
        else:
            found += [json.loads(line) for line in path.read_text().splitlines()]
    counted = Counter(row["path"] for row in found)
    assert set(counted.values()) == {1}
    return {row["path"]: row for row in found}


@pytest.mark.usefixtures("two_workers")
def test_the_same_rows_as_in_this_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = ["predict", "model.onnx", "new", "--quiet", "--json"]
    assert main(local) == 1  # one is unreadable
    expected = {row["path"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    on_ray = [*local, "--engine", "ray", "--out", str(tmp_path)]
    assert main(on_ray) == 1
    said = capsys.readouterr()
    assert {row["path"]: row for row in map(json.loads, said.out.splitlines())}.keys() == (
        expected.keys()
    )
    found = rows(tmp_path)
    assert found.keys() == expected.keys()
    for path, row in expected.items():
        if row["error"]:
            assert found[path]["error"] == row["error"]
            continue
        assert found[path]["score"] == pytest.approx(row["score"], abs=1e-6)
        assert found[path]["p_value"] == row["p_value"]
        assert len(found[path]["regions"]) == len(row["regions"])
    assert main([*on_ray, "--resume"]) == 1
    again = capsys.readouterr()
    assert again.out == ""  # nothing was left to score
    assert "41 of 41 images have scores" in again.err


def test_a_worker_that_is_killed(
    two_workers: int,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the first shard one of two workers gets SIGKILL: nothing is lost, nothing is written
    twice, and the log says what happened.
    """
    killed: list[int] = []
    score = scoring.score_shards

    def killing(*arguments: Any) -> Any:
        for shard in score(*arguments):
            if not killed:
                killed.append(int(shard.worker.rpartition(":")[2]))
                os.kill(killed[0], signal.SIGKILL)
            yield shard

    monkeypatch.setattr("igd.cli.predict_shards.score_shards", killing)
    command = ["predict", "model.onnx", "new", "--engine", "ray", "--out", str(tmp_path)]
    assert main([*command, "--quiet", "--format", "parquet"]) == 1
    assert len(rows(tmp_path)) == 41
    assert "a worker was lost" in capfd.readouterr().err
    manifest = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    workers = {each["worker"] for each in manifest}
    assert len(workers) == 3  # two, and the one that took the place of the first


@pytest.mark.usefixtures("two_workers")
def test_a_run_that_ends_early_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, score = ShardFolder.write, scoring.score_shards
    planned: list[Shard] = []

    def full(self: ShardFolder, scored: ScoredShard) -> None:
        if self.tally.images:
            raise OSError("No space left on device")
        write(self, scored)

    def noting(model: Path, rate: float, some: list[Shard], workers: int) -> Any:
        planned.extend(some)
        return score(model, rate, some, workers)

    command = ["predict", "model.onnx", "new", "--engine", "ray", "--out", str(tmp_path), "--quiet"]
    with monkeypatch.context() as patched:
        patched.setattr(ShardFolder, "write", full)
        assert main(command) == 1
    done = rows(tmp_path)
    assert 0 < len(done) < 41
    monkeypatch.setattr("igd.cli.predict_shards.score_shards", noting)
    assert main([*command, "--resume"]) == 1
    assert not {name for shard in planned for name in shard.names} & done.keys()
    assert len(rows(tmp_path)) == 41
    assert "No space left" in capsys.readouterr().err


@pytest.mark.usefixtures("two_workers")
def test_images_in_s3(tmp_path: Path, workplace: Path) -> None:
    import fsspec

    storage = fsspec.filesystem("s3")
    storage.mkdir("parts")
    storage.put(str(workplace / "new"), "parts/new", recursive=True)
    command = ["predict", "model.onnx", "--quiet", "--skip-unreadable"]
    on_ray = ["--engine", "ray", "--out", str(tmp_path / "out")]
    assert main([*command, "s3://parts/new", *on_ray]) == 0
    found = rows(tmp_path / "out")
    local = [*command, "s3://parts/new", "--out", str(tmp_path / "local"), "--format", "jsonl"]
    assert main(local) == 0
    expected = [json.loads(line) for line in (tmp_path / "local" / "scores.jsonl").open()]
    assert {each["path"] for each in expected} == found.keys()
    for each in expected:
        assert found[each["path"]]["score"] == pytest.approx(each["score"], abs=1e-6)
    assert (tmp_path / "local" / "parts" / "new" / "000.png.png").exists()
