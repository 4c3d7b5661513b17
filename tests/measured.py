"""Runs of benchmarks whose results are given."""

from collections.abc import Sequence
from typing import Any

from igd.benchmark.run import Protocol, Run
from igd.benchmark.run_store import Record


def record(
    value: float,
    normal: str = "0",
    seed: int = 0,
    method: str = "igd",
    data: str = "mnist",
    config_hash: str = "c",
    tested: int = 10_000,
    pretrain: str = "scratch",
    warnings: Sequence[str] = (),
    method_details: dict[str, Any] | None = None,
    **protocol: float,
) -> Record:
    settings = (
        {}
        if method in ("ocsvm", "kde")
        else {"recipe": "fast", "pretrain": pretrain, "objective": method}
    )
    run = Run(data, "copy", normal, method, settings, config_hash, seed, Protocol(**protocol))
    moved = round(run.protocol.contamination * tested * 0.9)
    result = {
        "metrics": {"image_auroc": value},
        "images": {
            "training": 6000,
            "normal": tested // 10,
            "anomalous": tested - tested // 10 - moved,
        },
        "protocols": [{"moved": ["an image"] * moved}],
        "seconds": {"training": 1},
        "method": method_details or {},
        "warnings": list(warnings),
    }
    return Record(run, result, None, "2024-01-01")
