"""Tables as text: Markdown, LaTeX, CSV, and a page of HTML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence

from jinja2 import ChoiceLoader, Environment, PackageLoader

from igd.benchmark.table import Cell, Table

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


def markdown(tables: Sequence[Table]) -> str:
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    lines = [f"## {table.title}", "", _line(table.header), _line(["---"] * len(table.header))]
    lines += [_line([f"**{cell.text}**" if cell.bold else cell.text for cell in row]) for row in table.rows]
    lines += ["", *table.notes]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def latex(tables: Sequence[Table]) -> str:
    return "\n".join(["% needs \\usepackage{booktabs}", *(_latex(table) for table in tables)])


def _latex(table: Table) -> str:
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


def comma_separated(tables: Sequence[Table]) -> str:
    """One line a figure: table, row, column, value and standard deviation, with all their digits; one that recurs, once."""
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
    writer.writerows(dict.fromkeys(lines))  # two columns of ours may stand beside the same one of the paper
    return written.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def page(tables: Sequence[Table], charts: Sequence[tuple[str, str]] = ()) -> str:
    """A self-contained HTML page, with charts as (caption, SVG)."""
    packages = [PackageLoader(name, "") for name in ("igd.benchmark", "igd.evaluation")]
    template = Environment(loader=ChoiceLoader(packages), autoescape=True).get_template("benchmark.html.j2")
    subtitle = "Measured here, and as published where a column says so."
    return template.render(title="igd benchmark", subtitle=subtitle, tables=tables, charts=charts)


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
    "html": page,
}
