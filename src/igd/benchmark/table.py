"""A table, before anyone has decided how it is printed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Cell:
    """A text and, where it says a number, that number."""

    text: str
    value: float | None = None
    deviation: float | None = None
    competes: bool = False  # for being the best of its row
    bold: bool = False

    @classmethod
    def figure(cls, value: float, deviation: float | None = None) -> Cell:
        spread = "" if deviation is None else f" ± {deviation:.3f}"
        return cls(f"{value:.3f}{spread}", value, deviation, competes=True)

    @classmethod
    def printed(cls, text: str) -> Cell:
        """A figure as someone else printed it, or '-' for none."""
        return cls(text) if text == "-" else cls(text, float(text), competes=True)

    def in_bold(self) -> Cell:
        return replace(self, bold=True)


@dataclass(frozen=True)
class Table:
    """Rows under a header; the first cell of a row says what it is about."""

    title: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)  # where each is named alone; empty: as in the header
