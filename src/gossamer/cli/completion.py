"""`gossamer completion SHELL`: a script that completes verbs, options and their values, and folders."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gossamer.cli.options import describe
from gossamer.cli.verbs import VERBS, options_of, parser_of


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "SHELL",
        [
            "gossamer completion bash > /etc/bash_completion.d/gossamer",
            "gossamer completion zsh > ~/.zfunc/_gossamer",
            "gossamer completion fish > ~/.config/fish/completions/gossamer.fish",
        ],
    )
    parser.add_argument("shell", choices=sorted(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")


def run(arguments: argparse.Namespace) -> int:
    print(SCRIPTS[arguments.shell]())
    return 0


def _options(verb: str) -> list[argparse.Action]:
    return list(options_of(parser_of(verb)))


def _long(option: argparse.Action) -> list[str]:
    return [name for name in option.option_strings if name.startswith("--")]


def _values(option: argparse.Action) -> list[str]:
    return [str(choice) for choice in option.choices or ()]


def _bash() -> str:
    cases = []
    for verb in VERBS:
        names = " ".join(name for option in _options(verb) for name in _long(option))
        cases.append(f"    {verb}) options='{names}' ;;")
    values = {
        f"{verb}:{name}": " ".join(_values(option))
        for verb in VERBS
        for option in _options(verb)
        for name in _long(option)
        if _values(option)
    }
    choices = [
        f"    {key}) COMPREPLY=($(compgen -W '{words}' -- \"$word\")); return ;;" for key, words in values.items()
    ]
    return "\n".join(
        [
            "_gossamer() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local verb="${COMP_WORDS[1]}" options=',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f"    COMPREPLY=($(compgen -W '{' '.join(VERBS)}' -- \"$word\")); return",
            "  fi",
            '  case "$verb:$before" in',
            *choices,
            f"    help:help) COMPREPLY=($(compgen -W '{' '.join(VERBS)}' -- \"$word\")); return ;;",
            "  esac",
            '  case "$verb" in',
            *cases,
            "  esac",
            '  case "$word" in -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;; esac',
            "}",
            "complete -o default -F _gossamer gossamer",
        ]
    )


def _zsh() -> str:
    lines = ["#compdef gossamer", "local -a verbs", "verbs=("]
    lines += [f"  '{verb}:{_quoted(purpose)}'" for verb, (_, purpose) in VERBS.items()]
    lines += [")", "if (( CURRENT == 2 )); then _describe verb verbs; return; fi", "case $words[2] in"]
    for verb in VERBS:
        specs = []
        for option in _options(verb):
            values = f":value:({' '.join(_values(option))})" if _values(option) else ""
            value = values or ("" if option.nargs == 0 else ":value:_files")
            specs += [f"'{name}[{_quoted(_short_help(option))}]{value}'" for name in _long(option)]
        lines.append(f"  {verb}) _arguments '*:file:_files' {' '.join(specs)} ;;")
    return "\n".join([*lines, "esac"])


def _fish() -> str:
    lines = ["complete -c gossamer -f -n __fish_use_subcommand"]
    for verb, (_, purpose) in VERBS.items():
        lines.append(f"complete -c gossamer -n __fish_use_subcommand -f -a {verb} -d '{_quoted(purpose)}'")
        for option in _options(verb):
            values = f" -x -a '{' '.join(_values(option))}'" if _values(option) else "" if option.nargs == 0 else " -r"
            for name in _long(option):
                where = f"-n '__fish_seen_subcommand_from {verb}'"
                lines.append(f"complete -c gossamer {where} -l {name[2:]}{values} -d '{_quoted(_short_help(option))}'")
    return "\n".join(lines)


def _short_help(option: argparse.Action) -> str:
    return (option.help or "").replace("%%", "%").partition(";")[0][:80]


def _quoted(text: str) -> str:
    """Return a text that may stand within single quotes in every shell, and in a description of zsh."""
    return text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ",").replace("\\", "")


SCRIPTS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
