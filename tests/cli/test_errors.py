"""Mistakes on the command line get one line that names them and the way out."""

import runpy

import pytest

from igd.cli import main


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["trian", "parts"], "did you mean train? (igd --help says more)"),
        (["benchmark", "shw"], "did you mean show? (igd benchmark --help says more)"),
        (["train"], "required: images, -o/--output (igd train --help says more)"),
        (
            ["train", "parts", "-o", "parts.igd", "--steps", "many"],
            "argument --steps: invalid int value: 'many'",
        ),
        (["train", "parts", "-o", "parts.igd", "--fit", "crp"], "did you mean crop?"),
        (
            ["benchmark", "run", "mnist", "--objective", "rec"],
            "--objective rec (igd benchmark run --help says more)",
        ),
        (["--loud", "train", "parts", "-o", "parts.igd"], "--loud (igd --help says more)"),
        (["xyzzy"], "invalid choice: 'xyzzy'"),
        (["predict", "m.igd", "x", "--treshold=3"], "--treshold=3 (igd predict --help"),
        (["predict", "m.igd", "x", "--overwite"], "--overwite; did you mean --overwrite?"),
        (["evaluate", "m.igd", "x", "--raport", "r.html"], "did you mean --report?"),
    ],
)
def test_a_slip_of_the_hand_gets_one_line(
    typed: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        main(typed)
    assert error.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("igd: error: ")
    assert says in line


def test_no_command_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "igd train parts/good -o parts.igd" in capsys.readouterr().out


def test_the_package_is_the_command_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["igd", "trian"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("igd", run_name="__main__")
    assert ended.value.code == 2
    assert "trian" in capsys.readouterr().err
