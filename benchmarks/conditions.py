"""What every measurement records about how it was made, and what 'from scratch' means."""

from __future__ import annotations

from datetime import date
from typing import Any

from igd import __version__, cpu

cpu.let_waiting_threads_sleep()  # as every command does, before torch is imported
cpu.let_threads_take_turns()

import torch  # noqa: E402

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
