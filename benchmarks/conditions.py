"""What every measurement records about how it was made, how it is told, and what 'from scratch'
means.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from igd import __version__, cpu

cpu.let_waiting_threads_sleep()  # as every command does, before torch is imported
cpu.let_threads_take_turns()

import torch  # noqa: E402

from igd.files import write_text  # noqa: E402

# Parameters of the published results from scratch, whatever the recipes' defaults become.
FROM_SCRATCH: dict[str, Any] = {"pretrain": "scratch", "combination": "sum"}


def conditions(recipe: str, seed: int) -> dict[str, Any]:
    """Recipe, seed, versions, threads and date, as they go into a result's JSON."""
    return {
        "recipe": recipe,
        "seed": seed,
        "igd": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "date": date.today().isoformat(),
    }


def publish(result: dict[str, Any], out: Path | None, shown: str | None = None) -> None:
    """Print a result, or the part of it that is worth looking at, and write it where that is asked
    for.
    """
    print(json.dumps(result[shown] if shown else result, indent=1))
    if out:
        write_text(out, json.dumps(result, indent=1) + "\n")
