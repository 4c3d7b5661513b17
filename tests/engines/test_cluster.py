"""What is refused before a cluster is started, and what a cluster may not do."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from conftest import stripes, write_images

from igd import IGD
from igd.cli import main


@pytest.fixture
def command(fitted: IGD, tmp_path: Path) -> list[str]:
    fitted.save(tmp_path / "model.igd")
    images = write_images(tmp_path / "new", stripes(3))
    return ["predict", str(tmp_path / "model.igd"), str(images), "--out", str(tmp_path / "out")]


def test_without_ray_one_sentence_says_what_to_install(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("igd.engines.cluster.find_spec", lambda name: None)
    assert main([*command, "--engine", "ray"]) == 2
    assert "pip install 'igd-anomaly[ray]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--address", "auto"], "no effect without --engine ray"),
        (["--workers", "2"], "no effect without --engine ray"),
        (["--format", "parquet"], "--engine ray"),
        (["--engine", "ray", "--format", "csv"], "jsonl or parquet"),
        (["--engine", "ray", "--maps", "npy"], "scores alone"),
        (["--engine", "ray", "--workers", "0"], "at least one"),
    ],
)
def test_what_has_no_effect_is_refused(
    flags: list[str], said: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if "--workers" in flags and "ray" in flags:
        pytest.importorskip("ray")
    assert main([*command, *flags]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nobody_else_on_the_network_reaches_it(two_workers: int) -> None:
    """Every port that processes of this machine's Ray listen on is one of 127.0.0.1."""
    import ray

    assert two_workers == 2
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert ray.get_runtime_context().gcs_address.startswith("127.0.0.1:")
    mine = sockets_below(os.getpid())
    assert mine
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in mine:  # it listens
            address = int(fields[1].partition(":")[0], 16).to_bytes(4, "little")
            assert socket.inet_ntoa(address) == "127.0.0.1"


def sockets_below(process: int) -> set[str]:
    """The inodes of the sockets of a process and those that it started."""
    found, parents = set[str](), {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {process}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    for each in below:
        for opened in Path(f"/proc/{each}/fd").glob("*"):
            try:
                target = str(opened.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found
