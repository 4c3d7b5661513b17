"""The completion scripts, run by the shells that they are for."""

import shutil
import subprocess

import pytest

from igd.cli import main

ASK = """source /dev/stdin
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _igd
echo "${COMPREPLY[@]}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["tr"], {"train"}),
        (["benchmark", ""], {"run", "show", "export", "paper"}),
        (["benchmark", "run", "--se"], {"--seeds"}),
        (["train", "parts/good", "-o", "parts.igd", "--st"], {"--steps", "--strict"}),
        (["predict", "par"], set()),  # files, which bash itself offers
        (["completion", "-"], {"--help"}),
    ],
)
def test_bash_offers_what_may_follow(typed: list[str], offered: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bash", "-c", ASK, "bash", "igd", *typed]
    answer = subprocess.run(asked, input=script("bash", capsys), capture_output=True, text=True, check=True)
    assert set(answer.stdout.split()) == offered
    assert not answer.stderr


def test_zsh_borrows_from_bash(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("zsh", capsys).endswith(script("bash", capsys))


def test_fish_says_what_each_word_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    lines = script("fish", capsys).splitlines()
    assert "complete -c igd -f -n __fish_use_subcommand -a train -d 'learn from normal images'" in lines
    inside = "'__fish_seen_subcommand_from benchmark; and __fish_seen_subcommand_from run'"
    assert any(line.startswith(f"complete -c igd -n {inside} -l seeds") for line in lines)


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["completion", "tcsh"])
    assert error.value.code == 2
    assert "bash" in capsys.readouterr().err
