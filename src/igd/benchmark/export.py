"""A store as one JSON file: what was measured, and all that is needed to measure it again."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from igd.benchmark.runs import Run
from igd.benchmark.store import Record, Store
from igd.errors import UserError
from igd.files import check_writable, write_text

KIND = "igd benchmark"


def export(store: Store, target: Path) -> int:
    """Write every finished run, the commands that made them, and when; returns how many there are."""
    check_writable(target)
    records = list(store.finished().values())
    if not records:
        raise UserError(f"{store.path}: holds no finished run yet")
    contents = {
        "kind": KIND,
        "what": f"{', '.join(sorted({each.run.data for each in records}))}; the last model of each run",
        "commands": store.commands(),
        "seeds": sorted({each.run.seed for each in records}),
        "recipes": sorted({each.run.settings["recipe"] for each in records if "recipe" in each.run.settings}),
        "date": date.today().isoformat(),
        "runs": [{"run": each.run.to_json(), "result": _brief(each.result), "ended_at": each.ended_at} for each in records],
    }
    write_text(target, json.dumps(contents, indent=1) + "\n")
    return len(records)


def _brief(result: dict[str, Any] | None) -> dict[str, Any]:
    """A result with the number of moved images in place of their names, which the seed gives again."""
    assert result is not None
    protocols = [{**each, "moved": len(each["moved"])} for each in result.get("protocols", [])]
    return {**result, "protocols": protocols}


def read_records(path: Path) -> list[Record]:
    """The runs of a store, or of a file that was exported from one."""
    if path.suffix != ".json":
        return Store(path).records()
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with: igd benchmark export STORE -o {path}")
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        if contents["kind"] != KIND:
            raise KeyError(KIND)
        return records_of(contents)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not an export of igd benchmark ({error})") from None


def records_of(contents: dict[str, Any]) -> list[Record]:
    return [Record(Run.from_json(each["run"]), each["result"], None, each["ended_at"]) for each in contents["runs"]]
