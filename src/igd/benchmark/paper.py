"""The paper's results: every figure of every table, as printed, with what it is a figure of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from igd.errors import UserError

MEAN = "mean"  # in place of a class


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
    """A table as it stands in the paper; a figure's meaning is what its table, column and row say together."""

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
    stored = json.loads((files("igd.benchmark") / "paper.json").read_text(encoding="utf-8"))["tables"]
    return {
        name: PaperTable(name, **{**each, "rows": [(about, cells.split()) for about, cells in each["rows"]]})
        for name, each in stored.items()
    }


def find_table(name: str) -> PaperTable:
    """A table by its name here or by its LaTeX label."""
    for table in paper_tables().values():
        if name in (table.name, table.label):
            return table
    raise UserError(f"the paper has no table called {name!r}; there are {', '.join(paper_tables())}")


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
    """The paper's figures for one thing, by pre-training; of several tables, the one with most digits."""
    found: dict[str | None, Figure] = {}
    asked = (data, metric, method, normal, training_share, contamination)
    for name in tables or tuple(paper_tables()):
        for each in find_table(name).figures():
            if (each.data, each.metric, each.method, each.normal, each.training_share, each.contamination) == asked:
                known = found.get(each.pretrain)
                if known is None or each.digits > known.digits:
                    found[each.pretrain] = each
    return found
