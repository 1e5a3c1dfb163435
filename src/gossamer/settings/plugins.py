"""Which plugins are installed, and which of them does a crawl use?

Nothing is read or imported before a crawl names a plugin. A crawl's settings name it with its version, as in
`plugin = ["csv==1.0"]`: what it did must be explicable later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from gossamer.model.errors import UsageError
from gossamer.settings.model import Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PARSER = "parser"
SINK = "sink"
ORDER = "order"
LINK_FILTER = "link filter"
GROUPS = {
    "gossamer.parsers": PARSER,
    "gossamer.sinks": SINK,
    "gossamer.orders": ORDER,
    "gossamer.link_filters": LINK_FILTER,
}
_METHODS = {PARSER: "parse", ORDER: "score", LINK_FILTER: "accept"}


class Plugin(Struct, frozen=True):
    """A plugin that is installed."""

    name: str
    kind: str
    package: str
    version: str
    entry: EntryPoint

    @property
    def described(self) -> str:
        """Return it for people: name, version, kind."""
        return f"{self.name} {self.version} ({self.kind})"


def installed_plugins() -> list[Plugin]:
    """Return the plugins that are installed, by name. Nothing of them is imported."""
    from importlib.metadata import entry_points  # 20 ms: most crawls have no plugins

    found = []
    for group, kind in GROUPS.items():
        for entry in entry_points(group=group):
            package = entry.dist.name if entry.dist is not None else "unknown"
            version = entry.dist.version if entry.dist is not None else "unknown"
            found.append(Plugin(entry.name, kind, package, version, entry))
    return sorted(found, key=lambda plugin: (plugin.name, plugin.kind))


def bare_name(plugin: str) -> str:
    """Return the name of a plugin, without its version."""
    return plugin.partition("==")[0].strip()


def check_plugins(names: Sequence[str]) -> None:
    """Raise if a plugin is not installed, cannot be loaded, or does not fit."""
    kinds = [_find(name).kind for name in names]
    if kinds.count(ORDER) > 1:
        raise UsageError(f"plugin: {kinds.count(ORDER)} orders ({', '.join(names)}); expected one at most")
    if len(set(map(bare_name, names))) < len(names):
        raise UsageError(f"plugin: {', '.join(names)}: one of them is named twice; expected each once")
    for name in names:
        load_plugin(bare_name(name))


@cache
def _find(name: str) -> Plugin:
    plugins = installed_plugins()
    found = [plugin for plugin in plugins if plugin.name == bare_name(name)]
    if len(found) > 1:
        where = " and ".join(f"{plugin.package} ({plugin.kind})" for plugin in found)
        raise UsageError(f"plugin = {bare_name(name)!r}: {where} have this name; expected one of them to be installed")
    if not found:
        known = ", ".join(plugin.name for plugin in plugins) or "none"
        used = f", and this crawl used version {name.partition('==')[2]} of it" if "==" in name else ""
        raise UsageError(f"plugin = {bare_name(name)!r}: not installed{used}; installed are: {known}")
    return found[0]


@cache
def load_plugin(name: str) -> Any:  # noqa: ANN401 - of any kind
    """Import a plugin and return its object, or the factory of a sink; raise UsageError if that is not possible."""
    plugin = _find(name)
    try:
        loaded = plugin.entry.load()
        made = loaded() if isinstance(loaded, type) and plugin.kind != SINK else loaded
    except Exception as error:  # the code of others may raise anything
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"plugin {plugin.described}: cannot be loaded: {what}; reinstall {plugin.package}") from error
    method = _METHODS.get(plugin.kind)
    if not callable(made if method is None else getattr(made, method, None)):
        wanted = "function (folder, worker)" if method is None else f"method {method!r}"
        raise UsageError(f"plugin {plugin.described}: {plugin.entry.value} has no {wanted}; see docs/plugins.md")
    if plugin.kind == PARSER and not getattr(made, "content_types", None):
        raise UsageError(f"plugin {plugin.described}: {plugin.entry.value} names no content_types; see docs/plugins.md")
    return made


def of_kind(names: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the bare names of the plugins of a kind, in their order; those that are not installed are left out."""
    found = {plugin.name for plugin in installed_plugins() if plugin.kind == kind} if names else set()
    return tuple(name for name in map(bare_name, names) if name in found)


def with_versions(settings: Settings) -> tuple[Settings, str]:
    """Return settings with the installed versions of plugins, and which have changed since, in one line."""
    if not settings.plugin:
        return settings, ""
    now = tuple(f"{bare_name(name)}=={_find(name).version}" for name in settings.plugin)
    pairs = zip(settings.plugin, now, strict=True)
    changed = [f"{was} is {new} now" for was, new in pairs if "==" in was and was != new]
    return replace(settings, plugin=now), "; ".join(changed)


def parser_types(names: Iterable[str]) -> tuple[str, ...]:
    """Return the content types that plugins read; those that cannot be loaded are left out."""
    types: list[str] = []
    for name in of_kind(names, PARSER):
        try:
            types += load_plugin(name).content_types
        except UsageError:  # a reader needs none of them; a crawl has checked them
            continue
    return tuple(types)


def state_of(plugin: Plugin) -> tuple[bool, str]:
    """Return whether a plugin can be used, and a line about it."""
    try:
        load_plugin(plugin.name)
    except UsageError as error:
        return False, str(error).removeprefix("plugin ")
    return True, plugin.described
