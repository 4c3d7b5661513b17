"""`igd completion`: a script that makes a shell complete commands, options and files, written from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from shlex import quote
from typing import Any, NamedTuple

from igd.cli.common import DONE

BASH = """_igd() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" path="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path$word" in
      {paths}) path="$path$word " ;;
    esac
  done
  case "$path:$current" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _igd igd"""
ZSH = "autoload -U +X bashcompinit && bashcompinit"
EXAMPLE = """example:
  source <(igd completion bash)                              in ~/.bashrc; the same with zsh in ~/.zshrc
  igd completion fish > ~/.config/fish/completions/igd.fish
"""


class Command(NamedTuple):
    """What may follow the words of a command."""

    path: tuple[str, ...]  # the words, without `igd`
    actions: dict[str, str]  # and what each is for
    options: dict[str, str]


def add(commands: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script that makes a shell complete igd's commands",
        description="Print a script that makes a shell complete igd's commands, options and files.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", choices=tuple(SCRIPTS))
    command.set_defaults(run=lambda options: run(options, parser()), verbose=False)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    print(SCRIPTS[options.shell](list(commands_of(parser))))
    return DONE


def commands_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """The parser's own command and all below it."""
    below: dict[str, argparse.ArgumentParser] = {}
    purposes: dict[str, str] = {}
    for action in parser._actions:  # argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            purposes = {choice.dest: choice.help or "" for choice in action._choices_actions}
    flags = {flag: action.help or "" for action in parser._actions for flag in action.option_strings if flag[:2] == "--"}
    yield Command(path, {name: purposes.get(name, "") for name in below}, flags)
    for name, each in below.items():
        yield from commands_of(each, (*path, name))


def bash(commands: list[Command]) -> str:
    """Options where a dash was typed, actions where there are any, files everywhere else."""
    cases = []
    for path, actions, options in commands:
        words = " ".join((*path, ""))
        cases.append(f"    {quote(f'{words}:-')}*) words={quote(' '.join(options))} ;;")
        if actions:
            cases.append(f"    {quote(f'{words}:')}*) words={quote(' '.join(actions))} ;;")
    paths = "|".join(quote(" ".join(command.path)) for command in commands if command.path)
    return BASH.format(paths=paths, cases="\n".join(cases))


def zsh(commands: list[Command]) -> str:
    return f"{ZSH}\n{bash(commands)}"


def fish(commands: list[Command]) -> str:
    """One line for each word, with what it is for."""
    lines = []
    for path, actions, options in commands:
        here = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path) or "__fish_use_subcommand"
        begun = f"; and not __fish_seen_subcommand_from {' '.join(actions)}" if path and actions else ""
        lines += [f"complete -c igd -f -n {quote(here + begun)} -a {name} -d {quote(why)}" for name, why in actions.items()]
        lines += [f"complete -c igd -n {quote(here)} -l {flag[2:]} -d {quote(why)}" for flag, why in options.items()]
    return "\n".join(lines)


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
