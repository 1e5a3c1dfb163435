"""The settings as command-line options, and the settings that a command line asks for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gossamer.errors import UsageError
from gossamer.settings.load import from_environment, from_file
from gossamer.settings.model import Option, options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every setting."""
    group = parser.add_argument_group("settings (each also a key of --config and GOSSAMER_… in the environment)")
    for option in options():
        if option.name != "pace":
            _add(group, option)
    group.add_argument("--crawl-delay", metavar="SECONDS", type=float, help="as --politeness-ms, in seconds")
    group.add_argument("--config", metavar="FILE.toml", type=Path, help="settings from a file")


def _add(group: argparse._ArgumentGroup, option: Option) -> None:
    flags = [*option.flags, f"--{option.key}"]
    note = "" if option.default in (None, "", ()) or option.is_switch else f" ({_shown(option.default)})"
    if option.is_switch:
        group.add_argument(
            *flags, action=argparse.BooleanOptionalAction, default=None, dest=option.name, help=_safe(option.help)
        )
    elif option.choices:
        group.add_argument(
            *flags, choices=option.choices, default=None, dest=option.name, help=_safe(option.help + note)
        )
    else:
        group.add_argument(
            *flags,
            action="append" if option.is_repeatable else "store",
            metavar=option.metavar,
            default=None,
            dest=option.name,
            help=_safe(option.help + ("" if option.is_repeatable else note)),
        )


def _safe(text: str) -> str:
    return text.replace("%", "%%")


def _shown(value: Any) -> str:  # noqa: ANN401 - a default of any kind
    return str(value).removesuffix(".0")


def given(arguments: argparse.Namespace) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what file, environment and flags set, in the order of their weight."""
    config = arguments.config or (Path(os.environ["GOSSAMER_CONFIG"]) if os.environ.get("GOSSAMER_CONFIG") else None)
    sources: list[tuple[str, Mapping[str, Any]]] = []
    if config is not None:
        sources.append((str(config), from_file(config)))
    sources.append(("environment", from_environment(os.environ)))
    flags = {option.name: value for option in options() if (value := getattr(arguments, option.name, None)) is not None}
    if arguments.crawl_delay is not None:
        if arguments.crawl_delay < 0:
            raise UsageError(f"--crawl-delay {arguments.crawl_delay:g}: not a number of seconds")
        flags["politeness_ms"] = round(arguments.crawl_delay * 1000)
    sources.append(("command line", flags))
    return sources
