"""Damaged and forged model files: .igd and .onnx.

A file with changed bytes must be refused, or say what it said before. A forged one, changed and
given the checksum that belongs to it, may say something else, but never what is no score, and
loading it must not crash, hang or fill the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torture.materials import Materials
from torture.mutations import chance, changed_bytes, forged_igd, forged_onnx
from torture.tally import Tally
from torture.worker import Worker

SAME = 1e-6
DEADLINE = 60.0
FORGED = 0.4  # share of the files
IGD = 0.6


def torture(materials: Materials, count: int, seed: int) -> Iterator[Tally]:
    image = str(next(iter(sorted(materials.images.iterdir()))))
    igd = round(IGD * count)
    plan = (
        ("models: .igd, changed bytes", materials.igd, False, range(round(igd * (1 - FORGED)))),
        ("models: .igd, forged", materials.igd, True, range(round(igd * (1 - FORGED)), igd)),
        (
            "models: .onnx, changed bytes",
            materials.onnx,
            False,
            range(igd, igd + round((count - igd) * (1 - FORGED))),
        ),
        (
            "models: .onnx, forged",
            materials.onnx,
            True,
            range(igd + round((count - igd) * (1 - FORGED)), count),
        ),
    )
    with Worker() as worker:
        for name, model, forged, numbers in plan:
            row = Tally(name)
            whole = worker.ask({"do": "load", "model": str(model), "image": image}, 120)
            for number in numbers:
                target = materials.folder / f"damaged{model.suffix}"
                told = make(model, target, forged, seed, number)
                job = {"do": "load", "model": str(target), "image": image}
                answer = worker.ask(job, DEADLINE)
                count_answer(row, f"{number} {told}, seed {seed}", answer, whole, forged)
            worker.close()  # memory is counted for each row by itself
            yield row


def make(model: Path, target: Path, forged: bool, seed: int, number: int) -> str:
    """Write a damaged copy; what was done to it."""
    rng = chance(seed, number)
    if forged and model.suffix == ".igd":
        return forged_igd(model, target, rng)
    told, contents = (forged_onnx if forged else changed_bytes)(model.read_bytes(), rng)
    target.write_bytes(contents)
    return told


def count_answer(
    row: Tally, case: str, answer: dict[str, Any], whole: dict[str, Any], forged: bool
) -> None:
    row.remember(answer.get("peak_mb", 0))
    for outcome in ("crashed", "hung"):
        if outcome in answer:
            return row.add(outcome, f"{case}: {answer[outcome]}")
    if "refused" in answer:
        return row.add("refused")
    score, p_value = answer["score"], answer["p_value"]
    if not (0 <= score <= 1 and 0 <= p_value <= 1):
        return row.add("wrong", f"{case}: {answer}")
    same = abs(score - whole["score"]) <= SAME and answer["is_anomalous"] == whole["is_anomalous"]
    if not same and not forged:
        return row.add("wrong", f"{case}: {answer}, undamaged {whole}")
    return row.add("survived", unnoticed=not same)
