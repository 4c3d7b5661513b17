"""Benchmarks and many models on a cluster: the same results, one writer, failures that stay
alone.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import stripes, write_digits, write_images

from igd import IGD
from igd.benchmark.run_store import RunStore
from igd.cli import main
from igd.engines.many_models import categories
from igd.errors import UserError

pytest.importorskip("ray", reason="ray is not installed: pip install 'igd-anomaly[ray]'")
pytestmark = pytest.mark.xdist_group("ray")

VARYING = ("seconds", "peak_memory_mb", "made_at")
QUICK = ["--pretrain", "scratch", "--steps", "3", "--width", "4"]


def results(path: Path) -> dict[str, dict[str, Any]]:
    """What was measured, without when, how long and how much memory it took."""
    return {
        key: {name: value for name, value in (record.result or {}).items() if name not in VARYING}
        for key, record in RunStore(path).finished().items()
    }


@pytest.mark.usefixtures("two_workers")
def test_a_grid_on_ray_measures_what_the_local_one_does(tmp_path: Path) -> None:
    data = write_digits(tmp_path / "mnist.npz", {0: 20, 1: 20}, {0: 10, 1: 10})
    command = ["benchmark", "run", "mnist", "--data", str(data), "--methods", "igd", "kde"]
    command += ["--classes", "0", *QUICK, "--quiet"]
    local, on_ray = tmp_path / "local.sqlite", tmp_path / "ray.sqlite"
    assert main([*command, "--store", str(local), "--jobs", "2"]) == 0
    assert main([*command, "--store", str(on_ray), "--engine", "ray"]) == 0
    assert len(results(local)) == 2
    assert results(local) == results(on_ray)  # to the last digit
    before = on_ray.read_bytes()
    assert main([*command, "--store", str(on_ray), "--engine", "ray", "--dry-run"]) == 0
    assert on_ray.read_bytes() == before


@pytest.mark.filterwarnings("ignore:.*model:")
@pytest.mark.usefixtures("two_workers")
def test_a_model_for_each_category(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = tmp_path / "plant"
    for seed, name in enumerate(("bolt", "nut")):
        write_images(parts / name, stripes(30, seed=seed))
    (parts / "washer").mkdir()
    (parts / "washer" / "notes.txt").write_text("no images yet")
    on_ray, here = tmp_path / "on-ray", tmp_path / "here"
    command = ["train", "--each", str(parts), *QUICK, "--quiet"]
    assert main([*command, "-o", str(on_ray), "--engine", "ray", "--json"]) == 1
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = {each["category"]: each for each in said}
    assert told.keys() == {"bolt", "nut", "washer"}
    assert "no images found" in told["washer"]["error"]
    assert told["bolt"]["promised_rate"] > 0
    shutil.rmtree(parts / "washer")
    assert main([*command, "-o", str(here)]) == 0
    printed = capsys.readouterr().out
    assert "promised" in printed
    assert "2 models, 0 failed" in printed
    for name in ("bolt", "nut"):
        one, other = (IGD.load(folder / f"{name}.igd") for folder in (on_ray, here))
        images = stripes(4, seed=9)
        assert [each.score for each in one.predict(images)] == [
            pytest.approx(each.score, abs=1e-6) for each in other.predict(images)
        ]
    (here / "nut.igd").unlink()
    kept = (here / "bolt.igd").stat().st_mtime_ns
    assert main([*command, "-o", str(here), "--resume"]) == 0
    assert (here / "nut.igd").exists()
    assert (here / "bolt.igd").stat().st_mtime_ns == kept


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="no such folder"):
        categories(tmp_path / "none")
    with pytest.raises(UserError, match="no folders in it"):
        categories(write_images(tmp_path / "flat", stripes(3)))
    flat = ["train", str(tmp_path / "flat"), "-o", str(tmp_path / "model.igd")]
    assert main([*flat, "--engine", "ray"]) == 2
    assert "--each" in capsys.readouterr().err
    assert main([*flat, "--each", "--group-by", "x"]) == 2
    assert "--group-by is not for --each" in capsys.readouterr().err
