"""A table of the paper, ready to be printed again."""

from __future__ import annotations

from typing import Any

from igd.benchmark.paper import PaperTable
from igd.benchmark.table import Cell, Table

PRETRAIN = {"scratch": "scratch", "imagenet": "ImageNet", "ssl": "SSL"}
METRICS = {"image_auroc": "AUC", "accuracy_at_half": "accuracy", "pixel_auroc_per_image": "pixel AUC"}


def reprint(table: PaperTable) -> Table:
    """The published figures with all their digits, rows and columns in the paper's order."""
    header = ["", *(_title(column) for column in table.columns)]
    rows = [[Cell(_title(about)), *map(Cell.printed, cells)] for about, cells in table.rows]
    return Table(f"{table.name} ({table.label}, {table.place})", header, rows, [table.caption])


def _title(about: dict[str, Any]) -> str:
    """What a row or a column is about, in few words."""
    parts = [METRICS[about["metric"]]] if "metric" in about else []
    parts += [about[name] for name in ("data", "method") if name in about]
    parts += [PRETRAIN[about["pretrain"]]] if "pretrain" in about else []
    parts += [about["normal"].replace("_", " ")] if "normal" in about else []
    parts += [f"{about['training_share']:.0%} of the training set"] if "training_share" in about else []
    parts += [f"{about['contamination']:.0%} contamination"] if "contamination" in about else []
    return ", ".join(parts) or "full training set"
