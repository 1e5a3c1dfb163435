"""The settings as command-line options, and the settings from a command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gossamer.cli.verbs import options_of, terminal_columns
from gossamer.model.errors import UsageError
from gossamer.settings.load import FileLabel, from_environment, from_file
from gossamer.settings.model import Group, Option, options
from gossamer.settings.seeds import Seed, seeds_from, seeds_from_csv, seeds_in_config

_CONFIG_HELP = "settings from a file; each option below is a key in it, and GOSSAMER_… in the environment"
_SOME_CONFIG_HELP = "settings from a file, as for a crawl; GOSSAMER_… in the environment are read, too"


class GroupedHelp(argparse.RawDescriptionHelpFormatter):
    """Help with compact options: `-n, --max-pages N`, `--[no-]traps`."""

    def __init__(self, prog: str, shown: Container[str] | None = None) -> None:
        super().__init__(prog, max_help_position=30, width=terminal_columns() - 2)
        self._shown = shown  # names of the options in a short help; None: all of them

    def add_argument(self, action: argparse.Action) -> None:
        """Add an option, unless the help is a short one without it."""
        if self._shown is None or action.dest in self._shown:
            super().add_argument(action)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        names = list(action.option_strings)
        if isinstance(action, argparse.BooleanOptionalAction):
            # Each --name is followed by its --no-name.
            names = [f"--[no-]{n[2:]}" if n[:2] == "--" else n for n in names if n[:5] != "--no-"]
        value = "" if action.nargs == 0 else f" {self._format_args(action, action.dest.upper())}"
        return ", ".join(names) + value


def describe(parser: argparse.ArgumentParser, usage: str, examples: Sequence[str]) -> None:
    """Set the usage of a verb with settings in one line, the headings in order, and examples at the end."""
    parser.usage = f"{parser.prog} {usage}"
    parser.epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
    parser.formatter_class = GroupedHelp
    for group in Group:
        group_of(parser, group)  # a heading without options is not shown


def shorten(parser: argparse.ArgumentParser, common: Sequence[str]) -> None:
    """Make `--help` show the common options only, and `--help-all` all of them. Call it after all are added."""
    parser.add_argument("--help-all", action=_FullHelp, nargs=0, const=parser.epilog, help="show all options, and exit")
    parser.formatter_class = partial(GroupedHelp, shown=common)
    number = sum(1 for _ in options_of(parser))
    parser.epilog = f"{parser.epilog}\n\n'{parser.prog} --help-all' shows all {number} options."


class _FullHelp(argparse.Action):
    """Prints the help with all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.formatter_class = GroupedHelp
        parser.epilog = self.const
        parser.print_help()
        parser.exit()


def group_of(parser: argparse.ArgumentParser, group: Group) -> argparse._ArgumentGroup:
    """Return the group of that name; create it if necessary."""
    known = {each.title: each for each in parser._action_groups}
    return known.get(group.value) or parser.add_argument_group(group.value)


def add_node_options(parser: argparse.ArgumentParser) -> None:
    group = group_of(parser, Group.CLUSTER)
    group.add_argument("--node", metavar="NAME", help="name of this node, unique in the crawl (host name and a suffix)")
    group.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="L",
        help="this node fetches what --region gives this label (repeatable)",
    )
    group.add_argument("--lease", type=float, default=10.0, metavar="S", help="a silent node counts as dead (10)")


def add_options(parser: argparse.ArgumentParser, *, is_node: bool = False, has_begun: bool = False) -> None:
    """Add an option for every setting, under its heading; those of a crawl on many machines only for a node.

    If the crawl `has_begun`, fixed settings are accepted without being listed: another value is refused by name.
    """
    parser.add_argument("--config", metavar="FILE.toml", type=Path, help=_CONFIG_HELP)
    for option in options():
        if option.group is Group.CLUSTER and not is_node:
            continue
        group = group_of(parser, option.group)
        if not option.is_table:
            _add(group, option, is_listed=not (has_begun and option.is_fixed))
        if option.name == "politeness_ms":
            group.add_argument("--crawl-delay", metavar="SECONDS", type=float, help="as --politeness-ms, in seconds")


def add_some(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Add an option for each of these settings, in one list, and the file with all of them."""
    parser.add_argument("--config", metavar="FILE.toml", type=Path, help=_SOME_CONFIG_HELP)
    for option in options():
        if option.name in names:
            _add(parser, option)


def _add(group: argparse._ArgumentGroup | argparse.ArgumentParser, option: Option, *, is_listed: bool = True) -> None:
    aliases = [flag for flag in option.flags if flag.startswith("--")]
    flags = [*(flag for flag in option.flags if flag not in aliases), f"--{option.key}", *aliases]
    text = _help(option) if is_listed else argparse.SUPPRESS
    if option.is_switch:
        group.add_argument(*flags, action=argparse.BooleanOptionalAction, default=None, dest=option.name, help=text)
    elif option.choices:
        group.add_argument(*flags, choices=option.choices, default=None, dest=option.name, help=text)
    else:
        group.add_argument(
            *flags,
            action="append" if option.is_repeatable else "store",
            metavar=option.metavar,
            default=None,
            dest=option.name,
            help=text,
        )


def _help(option: Option) -> str:
    """Return what an option does, with its default if that is a single value."""
    has_note = option.default not in (None, "", ()) and not option.is_repeatable
    note = f" ({_shown(option.default)})" if has_note else ""
    return (option.help + note).replace("%", "%%")


def _shown(value: Any) -> str:  # noqa: ANN401 - a default of any kind
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value).removesuffix(".0")


def config_file(arguments: argparse.Namespace) -> Path | None:
    """Return the configuration file, from the command line or the environment."""
    named = os.environ.get("GOSSAMER_CONFIG")
    chosen: Path | None = arguments.config or (Path(named) if named else None)
    return chosen


def given_seeds(arguments: argparse.Namespace) -> list[Seed]:
    """Return the seeds of the command line, of its list of domains, and of the configuration file."""
    seeds = seeds_from([*arguments.seed, *arguments.seeds])
    if arguments.domain_seeds_csv:
        seeds += seeds_from_csv(arguments.domain_seeds_csv)
    config = config_file(arguments)
    known = {seed.link.id for seed in seeds}
    return seeds + [seed for seed in (seeds_in_config(config) if config else []) if seed.link.id not in known]


def given(arguments: argparse.Namespace) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the values from file, environment and flags, in increasing precedence."""
    config = config_file(arguments)
    sources: list[tuple[str, Mapping[str, Any]]] = []
    if config is not None:
        sources.append((FileLabel(config), from_file(config)))
    sources.append(("environment", from_environment(os.environ)))
    flags = {option.name: value for option in options() if (value := getattr(arguments, option.name, None)) is not None}
    if getattr(arguments, "crawl_delay", None) is not None:
        flags["politeness_ms"] = _milliseconds(arguments.crawl_delay, flags.get("politeness_ms"))
    sources.append(("command line", flags))
    return sources


def _milliseconds(crawl_delay_s: float, politeness_ms: str | None) -> int:
    """Return --crawl-delay as --politeness-ms; refuse both together."""
    if politeness_ms is not None:
        both = f"--crawl-delay {crawl_delay_s:g} and --politeness-ms {politeness_ms}"
        raise UsageError(f"{both} set the same thing; expected one of them")
    if not 0 <= crawl_delay_s < float("inf"):
        raise UsageError(f"--crawl-delay {crawl_delay_s:g}: not a number of seconds")
    return round(crawl_delay_s * 1000)
