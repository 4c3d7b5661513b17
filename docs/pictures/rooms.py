"""The rooms of the house: the layers that import-linter checks, each with what its code says of itself.

python docs/pictures/rooms.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from drawing import arrow, box, drawing, text, write

ROOT = Path(__file__).parents[2]
WIDTH, ROW, LEFT, NAMES = 900, 34, 40, 130


def layers() -> list[list[str]]:
    """The modules of each layer, the highest first, as pyproject.toml has them."""
    listed = re.search(
        r"^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert listed is not None
    return [layer.split(" | ") for layer in re.findall(r'"(.+?)"', listed[1])]


def purpose(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / "src" / module.replace(".", "/")
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(source)) or ""
    return re.split(r"\.\s|\.$|\n\n", said, maxsplit=1)[0].replace("\n", " ")


def rooms() -> str:
    parts = []
    rows = layers()
    for number, layer in enumerate(rows):
        top = 16 + number * ROW
        names = [module.removeprefix("igd.") for module in layer]
        said = purpose(layer[0]) if len(layer) == 1 else ""
        parts.append(box(LEFT, top, WIDTH - LEFT - 16, ROW - 6))
        parts.append(text(LEFT + 12, top + 19, "   ·   ".join(names), "name"))
        parts.append(text(LEFT + NAMES, top + 19, said, "small"))
    bottom = 16 + len(rows) * ROW
    parts.append(arrow([(20, 20), (20, bottom - 10)]))
    parts.append(text(LEFT, bottom + 12, "A room uses the rooms below it, never those above, nor its neighbours.", "small"))
    return drawing(WIDTH, bottom + 28, "The rooms of igd, from the command line down to errors", parts)


if __name__ == "__main__":
    write(__file__, rooms())
