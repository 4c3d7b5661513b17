"""The lock file, the list of components and the licences: complete, in step, no addresses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_docs import ROOT, script

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def pins(text: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_every_pin_is_that_of_the_constraints_and_has_a_hash() -> None:
    tested, locked = pins((ROOT / "constraints.txt").read_text()), pins(LOCK)
    assert len(locked) > 50
    assert {name: tested.get(name) for name in locked} == locked
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}$", LOCK, re.MULTILINE)) == len(locked)


def test_it_holds_what_the_project_needs_and_no_address() -> None:
    needed = script(ROOT / "docs" / "licences.py").needed()
    assert set(needed) - set(pins(LOCK)) == {"torch"}
    assert "://" not in LOCK
    assert re.search(r"^#   pip install torch==", LOCK, re.MULTILINE)  # how to get it is said


def test_lock_from_a_report() -> None:
    def installed(name: str, version: str) -> dict[str, object]:
        files = {"url": "file:///x/y.whl", "archive_info": {"hashes": {"sha256": "ab" * 32}}}
        return {"metadata": {"name": name, "version": version}, "download_info": files}

    report = {
        "environment": {"python_version": "3.11"},
        "install": [
            installed("igd-anomaly", "1"),
            installed("torch", "2+cpu"),
            installed("B", "3"),
        ],
    }
    made = script(ROOT / "packaging" / "lock.py").lock(report)
    assert pins(made) == {"b": "3"}
    assert "torch==2 " in made
    assert "file:" not in made
    report["install"][2]["download_info"]["archive_info"] = {}  # type: ignore[index]
    with pytest.raises(KeyError):
        script(ROOT / "packaging" / "lock.py").lock(report)


def test_the_list_of_components_is_compared_with_the_lock(tmp_path: Path) -> None:
    check = script(ROOT / "packaging" / "check_sbom.py")
    listed = check.components(
        {"components": [{"name": "A_b", "version": "1"}, {"name": "torch", "version": "2"}]}
    )
    assert check.differences(listed, "a-b==1 \\\n") == []
    assert len(check.differences(listed, "a-b==2 \\\nc==1 \\\n")) == 2
    assert check.differences({"a-b": "1"}, "a-b==1 \\\n") == ["torch is missing"]


def test_the_page_of_licences_is_what_the_packages_say() -> None:
    made = script(ROOT / "docs" / "licences.py").page()
    assert (ROOT / "docs" / "licences.md").read_text(encoding="utf-8") == made, "make licences"
    assert "not stated" not in made
