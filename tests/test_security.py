"""The threat model of docs/security.md names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
THREATS = PAGE.split("## Threat model")[1].split("\n## ")[0]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", THREATS)))


@cache
def defined_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_each_promise_has_its_test(path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in defined_in(path)


def test_no_promise_is_without_one() -> None:
    rows = [line for line in THREATS.splitlines() if line.startswith("| ") and "**" not in line]
    promises = [row for row in rows if not row.startswith("| promise")]
    assert len(promises) > 20
    assert all("::test_" in row for row in promises)
