"""Settings that an operator changes after a crawl has started: blocked names, pace, limits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer.commands import BlockNames, ChangePace, ChangeSetting, SettingCommand, UnblockNames
from gossamer.core.url import canonical, host_of
from gossamer.errors import UsageError
from gossamer.settings.load import by_key, merged
from gossamer.settings.model import PaceSetting, Settings

CHANGEABLE = (
    *("max-pages", "max-time", "max-depth", "max-pages-per-host", "max-pages-per-domain"),
    *("max-wait", "connections"),
)
MAX_DELAY_S = 86_400.0


def with_command(settings: Settings, command: SettingCommand) -> Settings:
    """Return the settings as a command changes them; raise with one line if it cannot be obeyed."""
    match command:
        case BlockNames(names):
            return replace(settings, block_host=tuple(dict.fromkeys((*settings.block_host, *_names(names)))))
        case UnblockNames(names):
            return _unblocked(settings, _names(names))
        case ChangePace():
            return _paced(settings, command)
        case ChangeSetting(key, value):
            return _limited(settings, key.removeprefix("--").replace("_", "-"), value)


def _names(texts: Sequence[str]) -> list[str]:
    """Return hosts or domains in canonical form."""
    found = []
    for text in texts:
        name = text.strip().removeprefix("*.")
        url = canonical(name if "://" in name else f"http://{name}/") if name else None
        if url is None:
            raise UsageError(f"{text!r}: not a host or domain; expected example.org or shop.example.org")
        found.append(host_of(url))
    if not found:
        raise UsageError("no host or domain; expected example.org or shop.example.org")
    return found


def _unblocked(settings: Settings, names: Sequence[str]) -> Settings:
    for name in names:
        if name not in settings.block_host:
            raise UsageError(f"{name} is not blocked by a command or setting; blocked: {_listed(settings.block_host)}")
    return replace(settings, block_host=tuple(name for name in settings.block_host if name not in names))


def _paced(settings: Settings, command: ChangePace) -> Settings:
    pattern = command.pattern.strip().lower()
    if not pattern or any(each.isspace() or each == "/" for each in pattern):
        raise UsageError(f"{command.pattern!r}: not a pattern of hosts; expected example.org, *.example.org or *")
    if command.delay is not None and not 0 <= command.delay <= MAX_DELAY_S:
        raise UsageError(f"{command.delay:g} s: expected 0 to {MAX_DELAY_S:g} seconds")
    if command.connections is not None and command.connections < 1:
        raise UsageError(f"{command.connections} connections: expected at least 1")
    before = next((rule for rule in settings.pace if rule.host == pattern), PaceSetting(pattern))
    rule = PaceSetting(
        pattern,
        before.delay if command.delay is None else command.delay,
        before.connections if command.connections is None else command.connections,
    )
    others = tuple(each for each in settings.pace if each.host != pattern)
    return replace(settings, pace=(rule, *others))  # the first rule that matches counts


def _limited(settings: Settings, key: str, value: str | float | None) -> Settings:
    if key not in CHANGEABLE:
        raise UsageError(f"{key} cannot be changed while a crawl runs; these can: {', '.join(CHANGEABLE)}")
    name = by_key()[key].name
    given = None if isinstance(value, str) and value.lower() == "none" else value
    if isinstance(given, str) and not given.strip():
        raise UsageError(f"{key}: no value; expected a number, or none for no limit")
    values = {field: getattr(settings, field) for field in Settings.__struct_fields__}
    return merged((f"set {key}", {**msgspec.to_builtins(values), name: given}))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
