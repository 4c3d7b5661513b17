"""The paper's results: every figure of every table, as printed, with what it is a figure of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from igd.benchmark.result_tables import Cell, ResultTable
from igd.errors import UserError

MEAN = "mean"  # in place of a class
PRETRAIN_TITLES = {"scratch": "scratch", "imagenet": "ImageNet", "ssl": "SSL"}
METRIC_TITLES = {
    "image_auroc": "AUC",
    "accuracy_at_half": "accuracy",
    "pixel_auroc_per_image": "pixel AUC",
}


@dataclass(frozen=True)
class Figure:
    """One number of the paper."""

    table: str  # its name here
    printed: str  # with all its digits
    data: str
    metric: str
    method: str  # the paper's name; its own method is IGD
    pretrain: str | None = None  # scratch, imagenet or ssl; None: the table does not say
    normal: str = MEAN  # the class that is normal, or the mean over classes
    training_share: float = 1.0
    contamination: float = 0.0

    @property
    def value(self) -> float:
        return float(self.printed)

    @property
    def digits(self) -> int:
        """How many decimals are printed."""
        return len(self.printed.partition(".")[2])


@dataclass(frozen=True)
class PaperTable:
    """A table as it stands in the paper; a figure's meaning is what its table, column and row say
    together.
    """

    name: str
    label: str  # LaTeX's
    place: str  # main text or supplement
    caption: str
    common: dict[str, Any]
    columns: list[dict[str, Any]]
    rows: list[tuple[dict[str, Any], list[str]]]  # '-' where the paper has no figure

    def figures(self) -> Iterator[Figure]:
        for about, cells in self.rows:
            for column, printed in zip(self.columns, cells, strict=True):
                if printed != "-":
                    yield Figure(self.name, printed, **{**self.common, **column, **about})


@cache
def paper_tables() -> dict[str, PaperTable]:
    """All tables by name, in the paper's order."""
    stored = json.loads((files("igd.benchmark") / "paper.json").read_text(encoding="utf-8"))[
        "tables"
    ]
    return {
        name: PaperTable(
            name, **{**each, "rows": [(about, cells.split()) for about, cells in each["rows"]]}
        )
        for name, each in stored.items()
    }


def find_table(name: str) -> PaperTable:
    """A table by its name here or by its LaTeX label."""
    for table in paper_tables().values():
        if name in (table.name, table.label):
            return table
    raise UserError(
        f"the paper has no table called {name!r}; there are {', '.join(paper_tables())}"
    )


def published(
    data: str,
    metric: str,
    method: str,
    normal: str = MEAN,
    training_share: float = 1.0,
    contamination: float = 0.0,
    *,
    tables: tuple[str, ...] | None = None,
) -> dict[str | None, Figure]:
    """The paper's figures for one thing, by pre-training; of several tables, the one with most
    digits.

    A table of classes that states no pre-training has that of the same method's mean, where all
    tables that do state one agree.
    """
    found: dict[str | None, Figure] = {}
    asked = (data, metric, method, normal, training_share, contamination)
    for name in tables or tuple(paper_tables()):
        for each in find_table(name).figures():
            about = (each.data, each.metric, each.method, each.normal)
            if (*about, each.training_share, each.contamination) == asked:
                pretrain = each.pretrain
                if pretrain is None and name.endswith("-classes"):
                    pretrain = _stated_pretrain(data, metric, method)
                known = found.get(pretrain)
                if known is None or each.digits > known.digits:
                    found[pretrain] = each
    return found


@cache
def _stated_pretrain(data: str, metric: str, method: str) -> str | None:
    figures = [each for table in paper_tables().values() for each in table.figures()]
    stated = {
        each.pretrain
        for each in figures
        if each.pretrain and (each.data, each.metric, each.method) == (data, metric, method)
    }
    return stated.pop() if len(stated) == 1 else None


def reprint(table: PaperTable) -> ResultTable:
    """The published figures with all their digits, rows and columns in the paper's order."""
    header = ["", *(_title(column) for column in table.columns)]
    rows = [[Cell(_title(about)), *map(Cell.printed, cells)] for about, cells in table.rows]
    return ResultTable(
        f"{table.name} ({table.label}, {table.place})", header, rows, [table.caption]
    )


def _title(about: dict[str, Any]) -> str:
    """What a row or a column is about, in few words."""
    parts = [METRIC_TITLES[about["metric"]]] if "metric" in about else []
    parts += [about[name] for name in ("data", "method") if name in about]
    parts += [PRETRAIN_TITLES[about["pretrain"]]] if "pretrain" in about else []
    parts += [about["normal"].replace("_", " ")] if "normal" in about else []
    parts += (
        [f"{about['training_share']:.0%} of the training set"] if "training_share" in about else []
    )
    parts += [f"{about['contamination']:.0%} contamination"] if "contamination" in about else []
    return ", ".join(parts) or "full training set"
