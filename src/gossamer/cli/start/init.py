"""`gossamer init [SEED…]`: write a commented configuration file, with the seeds and whatever options are given.

Every setting is in it, under its heading, with what it does. One that was given is a line that counts; the others are
comments with their defaults. `gossamer crawl --config FILE` crawls what it says.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from gossamer.cli.options import add_options, describe, given, given_seeds, group_of
from gossamer.cli.pipes import STDOUT
from gossamer.model.errors import UsageError
from gossamer.settings.load import merged
from gossamer.settings.model import Group, Option, Settings, options
from gossamer.settings.seeds import lines_of
from gossamer.settings.toml import toml_value

DEFAULT_FILE = "gossamer.toml"
_WIDTH = 100
_PACE = """\
# Pace of hosts of a pattern, as often as needed:
#
# [[pace]]
# host = "*.example.org"
# delay = 0.2
# connections = 2
"""
_REQUEST = """\
# What requests to hosts of a pattern need: a login, headers, cookies, certificates, a proxy. Secrets are in variables
# of the environment, or in files:
#
# [[request]]
# host = "intranet.example.org"
# auth = "basic"
# user = "crawler"
# password-env = "INTRANET_PASSWORD"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb: those of a crawl, whose values go into the file."""
    describe(
        parser,
        "[SEED…] [-o FILE] [options of crawl]",
        [
            "gossamer init https://example.org/ --contact you@example.org --max-pages 500",
            "gossamer init seeds.txt --scope host -o news.toml",
            "gossamer crawl --config gossamer.toml -o crawls/example",
        ],
    )
    what = group_of(parser, Group.WHAT)
    what.add_argument("seed", nargs="*", metavar="SEED", help="a URL, a bare domain, or a file with one per line")
    what.add_argument("-s", "--seeds", action="append", default=[], metavar="SEED", help="more seeds")
    parser.set_defaults(domain_seeds_csv=None)
    output = group_of(parser, Group.OUTPUT)
    output.add_argument(
        "-o", "--out", default=DEFAULT_FILE, metavar="FILE", help=f"the file ({DEFAULT_FILE}), - prints it"
    )
    output.add_argument("--force", action="store_true", help="replace the file if there is one")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    given_seeds(arguments)  # raises if one cannot be a seed
    sources = given(arguments)
    settings = merged(*sources)
    named = {name for _, values in sources for name in values}
    text = "\n".join(_lines(lines_of([*arguments.seed, *arguments.seeds]), settings, named))
    if arguments.out == STDOUT:
        print(text, end="")
        return 0
    path = Path(arguments.out)
    _write(path, text, replaces=arguments.force)
    print(f"{path}: edit it, then: gossamer crawl --config {path} -o crawls/NAME")
    return 0


def _write(path: Path, text: str, *, replaces: bool) -> None:
    how = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replaces else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, how, 0o644), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path}: there is such a file; expected another name (-o FILE), or --force") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def _lines(seeds: list[str], settings: Settings, named: set[str]) -> Iterator[str]:
    """Yield the lines of the file."""
    yield "# The configuration of a crawl. Lines with # are comments: they show the defaults."
    yield ""
    yield "# URLs, bare domains, or files with one per line (beside this file)."
    yield from (
        ("seeds = [", *(f"  {toml_value(seed)}," for seed in seeds), "]") if seeds else ('# seeds = ["example.org"]',)
    )
    for group in Group:
        of_group = [option for option in options() if option.group is group and not option.is_table]
        if of_group:
            yield from ("", f"## {group.value}")
        for option in of_group:
            yield from _lines_of(option, getattr(settings, option.name), is_set=option.name in named)
    yield from ("", *_tables(settings))


def _lines_of(option: Option, value: Any, *, is_set: bool) -> Iterator[str]:  # noqa: ANN401 - any setting's
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    yield ""
    yield from (f"# {line}" for line in wrap(option.help + choices, _WIDTH))
    shown = toml_value(msgspec.to_builtins(value)) if value is not None else _unset(option)
    yield f"{'' if is_set else '# '}{option.key} = {shown}"


def _unset(option: Option) -> str:
    """Return the value of a setting without a default, as an example."""
    if option.choices:
        return toml_value(option.choices[0])
    return '"…"' if option.metavar not in ("N", "SECONDS") else "…"


def _tables(settings: Settings) -> Iterator[str]:
    """Yield the tables by host pattern, or examples of them."""
    for name, example in (("pace", _PACE), ("request", _REQUEST)):
        rules = msgspec.to_builtins(getattr(settings, name))
        if not rules:
            yield example
        for rule in rules:
            yield f"[[{name}]]"
            yield from (f"{key} = {toml_value(value)}" for key, value in rule.items() if value is not None)
            yield ""
