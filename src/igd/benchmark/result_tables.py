"""A table before anyone has decided how it is printed, and the ways to print it: Markdown, LaTeX,
CSV and a page of HTML.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from jinja2 import ChoiceLoader, Environment, PackageLoader

WITHIN = 0.005  # 'the best result (within 0.5%)': the paper's rule for bold print
SPECIAL = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "±": r"$\pm$",
    "λ": r"$\lambda$",
}


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
class ResultTable:
    """Rows under a header; the first cell of a row says what it is about."""

    title: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)  # names where each stands alone, if others


def bold_row(name: str, cells: Sequence[Cell]) -> list[Cell]:
    """A row with its best figures in bold."""
    rivals = [cell.value for cell in cells if cell.competes and cell.value is not None]
    least = max(rivals, default=0.0) - WITHIN - 1e-12
    if len(rivals) > 1:
        cells = [
            cell.in_bold() if cell.competes and (cell.value or 0) >= least else cell
            for cell in cells
        ]
    return [Cell(name), *cells]


def markdown(tables: Sequence[ResultTable]) -> str:
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: ResultTable) -> str:
    lines = [f"## {table.title}", "", _line(table.header), _line(["---"] * len(table.header))]
    lines += [
        _line([f"**{cell.text}**" if cell.bold else cell.text for cell in row])
        for row in table.rows
    ]
    lines += ["", *table.notes]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def latex(tables: Sequence[ResultTable]) -> str:
    return "\n".join(["% needs \\usepackage{booktabs}", *(_latex(table) for table in tables)])


def _latex(table: ResultTable) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'c' * (len(table.header) - 1)}}}",
        r"\toprule",
        " & ".join(map(_tex, table.header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_latex_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_tex(' '.join([table.title + '.', *table.notes]))}}}",
        rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', table.title.lower()).strip('-')}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell) -> str:
    if cell.value is not None and cell.text[0] in "+-":
        return f"${cell.text}$"  # outside of mathematics, a minus is a hyphen
    return rf"\textbf{{{_tex(cell.text)}}}" if cell.bold else _tex(cell.text)


def _tex(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)


def comma_separated(tables: Sequence[ResultTable]) -> str:
    """One line a figure: table, row, column, value and standard deviation, with all their digits;
    one that recurs, once.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["table", "row", "column", "value", "standard_deviation"])
    lines = [
        (table.title, name.text, column, _number(cell.value), _number(cell.deviation))
        for table in tables
        for name, *cells in table.rows
        for column, cell in zip((table.columns or table.header)[1:], cells, strict=True)
        if cell.value is not None
    ]
    # Two columns of ours may stand beside the same one of the paper.
    writer.writerows(dict.fromkeys(lines))
    return written.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def page(tables: Sequence[ResultTable], charts: Sequence[tuple[str, str]] = ()) -> str:
    """A self-contained HTML page, with charts as (caption, SVG)."""
    packages = [PackageLoader(name, "") for name in ("igd.benchmark", "igd.evaluation")]
    template = Environment(loader=ChoiceLoader(packages), autoescape=True).get_template(
        "benchmark.html.j2"
    )
    subtitle = "Measured here, and as published where a column says so."
    return template.render(title="igd benchmark", subtitle=subtitle, tables=tables, charts=charts)


FORMATS: dict[str, Callable[[Sequence[ResultTable]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
    "html": page,
}
