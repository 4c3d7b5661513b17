"""The completion scripts, run by the shells that they are for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from igd.cli import main

TYPED = [
    (["tr"], {"train"}),
    (["benchmark", ""], {"run", "show", "export", "paper"}),
    (["benchmark", "run", "--se"], {"--seeds"}),
    (["train", "parts/good", "-o", "parts.igd", "--st"], {"--steps", "--strict"}),
    (["predict", "par"], {"parts.igd"}),
    (["completion", "f"], {"fish"}),
]
BASH = """source /dev/stdin
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
complete -p igd | grep -q -- "-F _shtab_igd"
_shtab_igd igd "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[@]}"
"""
ZSH = "autoload -U compinit && compinit -u -D; source <(cat); print -r -- ${_comps[igd]}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts.igd").touch()
    return tmp_path


def answer(shell: str, program: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program of this shell prints that gets the script on its standard input."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    done = subprocess.run(
        [shell, *program], input=script, capture_output=True, text=True, check=True, cwd=folder
    )
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_bash_offers_what_may_follow(
    typed: list[str], offered: set[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = answer("bash", ["-c", BASH, "bash", "igd", *typed], folder, capsys)
    assert set(printed.split()) == offered


@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_fish_offers_what_may_follow_and_says_what_it_is_for(
    typed: list[str], offered: set[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"source -; complete -C 'igd {' '.join(typed)}'"
    lines = answer("fish", ["--no-config", "-c", asked], folder, capsys).splitlines()
    assert {line.split("\t")[0] for line in lines} == offered
    if typed == ["tr"]:
        assert lines == ["train\tLearn from normal images."]


def test_zsh_registers_the_script_where_it_is_sourced(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer("zsh", ["-f", "-c", ZSH], folder, capsys).strip() == "_shtab_igd"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script_with_every_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("train", "predict", "evaluate", "max-false-alarms", "benchmark"):
        assert word in script


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["completion", "tcsh"])
    assert error.value.code == 2
    assert "bash" in capsys.readouterr().err
