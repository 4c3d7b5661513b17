"""The rooms of igd: the layers that import-linter checks, each with what its code says of itself.

python docs/pictures/rooms.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from drawing import arrow, box, drawing, text, write

ROOT = Path(__file__).parents[2]
WIDTH, ROW, LINE, LEFT, RIGHT, NAMES, GAP = 900, 34, 16, 40, 16, 110, 8
LETTER = 5.8  # the width of one, about


def layers() -> list[list[str]]:
    """The modules of each layer, the highest first, as pyproject.toml has them."""
    listed = re.search(
        r"^layers = \[(.*?)^\]",
        (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    assert listed is not None
    return [re.split(r" [|:] ", layer) for layer in re.findall(r'"(.+?)"', listed[1])]


def purpose(module: str) -> str:
    """The first sentence of a module's docstring; of a package without one, its modules."""
    path = ROOT / "src" / module.replace(".", "/")
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(
        encoding="utf-8"
    )
    said = ast.get_docstring(ast.parse(source))
    if said is None:
        return ", ".join(sorted(each.stem for each in path.glob("[!_]*.py")))
    return re.split(r"\.\s|\.$|\n\n", said, maxsplit=1)[0].replace("\n", " ")


def height(layer: list[str]) -> int:
    """Rooms that share a row say what they are for below their names, where there is space."""
    return ROW + LINE if 1 < len(layer) < 4 else ROW


def room(module: str, x: float, top: float, width: float, layer: list[str]) -> list[str]:
    """A box with a name, and with a purpose where there is space for it."""
    name = module.removeprefix("igd.") + (
        "/" if (ROOT / "src" / "igd" / module[4:]).is_dir() else ""
    )
    parts = [box(x, top, width, height(layer) - 6), text(x + 12, top + 19, name, "name")]
    if len(layer) == 1:
        parts.append(text(x + NAMES, top + 19, purpose(module), "small"))
    elif len(layer) < 4:
        said = purpose(module)
        short = said if len(said) * LETTER < width - 24 else re.split("[:,]", said, maxsplit=1)[0]
        parts.append(text(x + 12, top + 19 + LINE, short, "small"))
    return parts


def rooms() -> str:
    parts = []
    bottom = 16
    for layer in layers():
        width = (WIDTH - LEFT - RIGHT - GAP * (len(layer) - 1)) / len(layer)
        for place, module in enumerate(layer):
            parts += room(module, LEFT + place * (width + GAP), bottom, width, layer)
        bottom += height(layer)
    parts.append(arrow([(20, 20), (20, bottom - 10)]))
    parts.append(
        text(
            LEFT,
            bottom + 12,
            "A room uses the rooms below it, never those above, nor its neighbours; "
            "the small modules of the last row may use each other.",
            "small",
        )
    )
    return drawing(
        WIDTH, bottom + 28, "The rooms of igd, from the command line down to errors", parts
    )


if __name__ == "__main__":
    write(__file__, rooms())
