"""The API reference says what the code says: comments behind attributes and parameters are their
documentation.

An extension of griffe, which reads the source for mkdocstrings.
"""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import fields
from pathlib import Path
from typing import Any

from griffe import Attribute, Docstring, Extension, Function

from igd.training.parameters import Parameters


class Comments(Extension):
    """Takes the comment at the end of a line as the documentation of what the line defines."""

    def __init__(self) -> None:
        self.read: dict[Path, dict[int, str]] = {}

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        if attr.parent is not None and attr.parent.name == "Parameters":
            _explain(attr)
        elif (
            attr.docstring is None
            and attr.lineno
            and (comment := self._comments(attr.filepath).get(attr.lineno))
        ):
            attr.docstring = Docstring(comment, parent=attr)

    def on_function_instance(self, *, node: Any, func: Function, **_: Any) -> None:
        if not isinstance(node, ast.FunctionDef):
            return
        comments = self._comments(func.filepath)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        lines = [
            f"    {each.arg}: {comments[each.lineno]}"
            for each in arguments
            if each.lineno in comments
        ]
        if lines:
            said = func.docstring.value if func.docstring else ""
            func.docstring = Docstring(
                "\n".join([said, "", "Args:", *lines]), parent=func, parser="google"
            )

    def _comments(self, path: Path | list[Path]) -> dict[int, str]:
        """The comments of a file by their line."""
        if not isinstance(path, Path):
            return {}
        if path not in self.read:
            self.read[path] = comments(path.read_text(encoding="utf-8"))
        return self.read[path]


def _explain(attr: Attribute) -> None:
    """A parameter of a training says in its field what its flag says in `--help`."""
    for each in fields(Parameters):
        if each.name == attr.name:
            attr.value = repr(each.default)
            said = each.metadata["help"].replace("%(default)s", str(each.default))
            attr.docstring = Docstring(said, parent=attr)


def comments(source: str) -> dict[int, str]:
    """Comments behind code, by line number; those on lines of their own speak of something else."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = (
        each
        for each in tokens
        if each.type == tokenize.COMMENT and each.line[: each.start[1]].strip()
    )
    return {
        each.start[0]: each.string.lstrip("# ")
        for each in found
        if not each.string.startswith(("# noqa", "# type:"))
    }
