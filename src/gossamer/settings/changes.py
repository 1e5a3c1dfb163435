"""Settings that an operator changes after a crawl has started: blocked names, pace, limits."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec
from msgspec.structs import replace

from gossamer.core.url.forms import canonical, host_of
from gossamer.model.commands import BlockNames, ChangePace, ChangeSetting, SettingCommand, UnblockNames
from gossamer.model.errors import UsageError
from gossamer.model.records import Outcome
from gossamer.settings.load import by_key, merged
from gossamer.settings.model import PaceSetting, Settings

CHANGEABLE = (
    *("max-pages", "max-time", "max-depth", "max-pages-per-host", "max-pages-per-domain"),
    *("max-wait", "connections"),
)
_NEEDED = ("connections", "max-wait", "max-depth")  # always have a value
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


def described(settings: Settings, command: SettingCommand) -> str:
    """Return for people what a command has changed; `settings` are those with the change."""
    match command:
        case BlockNames(names):
            return f"no more requests to {', '.join(names)}"
        case UnblockNames(names):
            return f"{', '.join(names)} unblocked"
        case ChangePace(pattern):
            return f"{pattern}: {_pace(settings, pattern.strip().lower())}"
        case ChangeSetting(key):
            value = getattr(settings, key.removeprefix("--").replace("-", "_"))
            return f"{key.removeprefix('--')} = {'none' if value is None else value}"


def unblocked_hint(crawl: str) -> str:
    """Return how to continue where a block has ended, if the crawl does not do it by itself."""
    return f"'gossamer retry {shlex.quote(crawl)} --outcome {Outcome.OPTED_OUT}' queues what the block removed"


def _pace(settings: Settings, pattern: str) -> str:
    """Return the pace of a pattern, and the narrower ones that it does not change."""
    rule = next(rule for rule in settings.pace if rule.host == pattern)
    delay = [] if rule.delay is None else [f"{rule.delay:g} s between requests"]
    narrower = [each.host for each in settings.pace if each.host != pattern and fnmatchcase(each.host, pattern)]
    kept = f"; narrower rules still count: {', '.join(narrower)}" if narrower else ""
    few = [] if rule.connections is None else [f"{rule.connections} connection{'s' * (rule.connections != 1)}"]
    return ", ".join([*delay, *few]) + kept


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
    return replace(settings, pace=(rule, *others))


def _limited(settings: Settings, key: str, value: str | float | None) -> Settings:
    if key not in by_key():
        from difflib import get_close_matches

        near = get_close_matches(key, CHANGEABLE, 1)
        hint = f"did you mean {near[0]}?" if near else f"these can be changed: {', '.join(CHANGEABLE)}"
        raise UsageError(f"{key}: no such setting; {hint}")
    if key not in CHANGEABLE:
        raise UsageError(f"{key} cannot be changed while a crawl runs; these can: {', '.join(CHANGEABLE)}")
    name = by_key()[key].name
    given = None if isinstance(value, str) and value.lower() == "none" else value
    if isinstance(given, str) and not given.strip():
        raise UsageError(f"{key}: no value; expected a number, or none for no limit")
    if given is None and key in _NEEDED:
        raise UsageError(f"{key} = none: there must be a limit; expected a number")
    if key == "max-time" and _is_zero(given):
        raise UsageError(f"max-time = {given}: every run would end at once; expected more than 0 seconds, or none")
    values = {field: getattr(settings, field) for field in Settings.__struct_fields__}
    return merged((f"set {key}", {**msgspec.to_builtins(values), name: given}))


def _is_zero(value: str | float | None) -> bool:
    try:
        return value is not None and float(value) == 0
    except ValueError:
        return False


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
