"""Where settings come from: defaults, the folder of a crawl that continues, a file, the environment, flags.

Each later source wins. An error is one line that names the source, the key and what was
expected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer.core.links.requisite import MAX_ROOM
from gossamer.core.links.scope import Reach
from gossamer.core.robots.rules import product_token
from gossamer.core.url.patterns import pattern_fault
from gossamer.model.errors import UsageError
from gossamer.settings.budget import check_ceiling, size_from, usable_cores
from gossamer.settings.identity import robots_token_of
from gossamer.settings.listening import address_of, public_url_of
from gossamer.settings.model import Option, PaceSetting, PageTypes, PdfUse, Settings, options
from gossamer.settings.plugins import bare_name
from gossamer.settings.regions import check_regions
from gossamer.settings.requests import (
    PROXY_PASSWORD_VARIABLE,
    check_requests,
    explained_request,
    with_absolute_paths,
)
from gossamer.settings.revisit import check_revisit
from gossamer.settings.rules import check_own_hosts
from gossamer.settings.seeds import SEEDS_KEY
from gossamer.settings.stores import (
    PASSWORD_VARIABLES,
    check_catalogs,
    check_feeds,
    check_stores,
    has_archive,
    masked_store,
)
from gossamer.settings.toml import read_toml, toml_value

MAX_SECONDS = 1e9  # 30 years; a timer of the kernel cannot be set to any number
DEFAULT_MAX_PAGES = 10_000
PREFIX = "GOSSAMER_"
_MEDIA_TYPE = r"[a-zA-Z0-9.+-]+/(?:[a-zA-Z0-9.+-]+|\*)"
Source: TypeAlias = tuple[str, Mapping[str, Any]]  # its name, and what it sets
# What may differ between the nodes of a crawl.
PER_NODE = frozenset(
    {
        *("connections", "workers", "timeout", "memory", "max_time", "spool", "save_interval", "crawl_log"),
        *("dns", "dns_rate", "ca_file", "allow_network", "mask_queries", "geoip", "proxy", "request"),
        *("ui", "ui_listen", "ui_url", "ui_token_file", "metrics_listen"),
    }
)
WITH_PASSWORDS = ("store", "catalog", "feed")  # lists of URLs
# Of one run on one machine: not part of the crawl, and not stored with it.
SERVED = ("ui", "ui_listen", "ui_url", "ui_token_file", "metrics_listen")
# Keys of a table [ui], and the settings that they stand for.
_UI_KEYS = {
    "listen": "ui-listen",
    "url": "ui-url",
    "token-file": "ui-token-file",
    "metrics-listen": "metrics-listen",
}
# Our names in the environment that are not settings of a crawl.
_OTHER_VARIABLES = frozenset(
    {
        "GOSSAMER_CONFIG",
        "GOSSAMER_REQUIRE_ENGINES",
        "GOSSAMER_FAILPOINT",
        "GOSSAMER_NO_KERNEL",
        "GOSSAMER_TLS_KEYLOG",
        "GOSSAMER_REDIS_USER",
        "GOSSAMER_REDIS_PASSWORD",
        PROXY_PASSWORD_VARIABLE,
        *PASSWORD_VARIABLES.values(),
    }
)


def refuse_dashboard(settings: Settings, what: str) -> None:
    """Raise if a dashboard or metrics are wanted where nothing serves them."""
    for name in SERVED:
        if getattr(settings, name):
            raise UsageError(f"{name.replace('_', '-')}: {what} serves no dashboard; 'gossamer ui DIR' shows a crawl")


def by_key() -> dict[str, Option]:
    """Return the options by their key, with `-` and with `_`."""
    return {name: option for option in options() for name in (option.key, option.name)}


SET_KEY = "set-by-command"  # of the file in a crawl folder


class FileLabel(str):
    """Where values come from, if that is a file that is given at every start (`--config`)."""

    __slots__ = ()


def set_by_operator(path: Path) -> frozenset[str]:
    """Return the names of the settings in the file of a crawl that were changed by a command since it began.

    They win over a file that is given again when a service starts the crawl anew.
    """
    keys = read_toml(path).get(SET_KEY, []) if path.is_file() else []
    known = by_key()
    return frozenset(known[key].name for key in keys if isinstance(key, str) and key in known)


def rewritten(path: Path, settings: Settings, before: Settings | None = None) -> str:
    """Return the file of a crawl with these settings; `before` are those that a command has changed.

    A time limit of one run is not written: only a new crawl, or a command, has one for all runs.
    """
    if not path.is_file():
        return to_toml(settings)
    changed = {option.name for option in options() if _is_changed(option.name, before, settings)}
    if "max_time" not in changed:
        settings = replace(settings, max_time=merged((str(path), from_file(path))).max_time)
    return to_toml(settings, set_by_operator(path) | changed)


def _is_changed(name: str, before: Settings | None, after: Settings) -> bool:
    return before is not None and getattr(before, name) != getattr(after, name)


def from_file(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML file, by field name."""
    values = read_toml(path)
    values.pop(SEEDS_KEY, None)  # see `settings.seeds.seeds_in_config`
    values.pop(SET_KEY, None)  # see `set_by_operator`
    if isinstance(values.get("ui"), dict):
        values |= _ui_keys(values["ui"], path)
    known = by_key()
    for key in values:
        if key not in known:
            raise UsageError(f"{path}: unknown key '{key}'{_suggestion(key, known)}")
    return {known[key].name: value for key, value in values.items()}


def _ui_keys(table: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a table `[ui]` says, as keys of the file: the dashboard is wanted, and where."""
    stray = next((key for key in table if key not in _UI_KEYS), None)
    if stray is not None:
        raise UsageError(f"{path}: [ui]: unknown key '{stray}'; expected {_listed([*_UI_KEYS])}")
    return {"ui": True, **{_UI_KEYS[key]: value for key, value in table.items()}}


def _suggestion(key: str, known: Mapping[str, Option]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(key, [name for name in known if "_" not in name], n=1)
    return f"; did you mean '{close[0]}'?" if close else "; 'gossamer crawl --help' lists all options"


def check_names(values: Mapping[str, Any], others: Sequence[str] = ()) -> None:
    """Refuse names that are not settings, in the form that a program uses; others may be meant, too."""
    from difflib import get_close_matches

    known = [option.name for option in options()]
    for name in values:
        if name not in known:
            close = get_close_matches(name, [*known, *others], n=1)
            hint = f"did you mean '{close[0]}'?" if close else "'gossamer crawl --help' lists all"
            raise UsageError(f"no setting '{name}'; {hint}")


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of `GOSSAMER_…` variables, by field name."""
    known = by_key()
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in _OTHER_VARIABLES:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in known:
            raise UsageError(f"environment: {variable} is not a setting{_suggestion(name.replace('_', '-'), known)}")
        values[name] = text.split(",") if known[name].is_repeatable else text
    return values


def merged(*sources: tuple[str, Mapping[str, Any]]) -> Settings:
    """Return the settings from the sources, each with its name, the last one winning."""
    settings: dict[str, Any] = {}
    named: dict[str, str] = {}
    for source, values in sources:
        settings.update(values)
        named.update(dict.fromkeys(values, source))
    if settings.get("workers") in ("auto", "0", 0):
        settings["workers"] = usable_cores()
    for name in ("ca_file", "geoip"):
        if isinstance(settings.get(name), str) and settings[name]:
            settings[name] = str(Path(settings[name]).absolute())  # a crawl may be continued from elsewhere
    if "request" in settings:
        settings["request"] = with_absolute_paths(settings["request"])
    for name in _WITH_NONE:
        if settings.get(name) == NO_LIMIT:
            settings[name] = None
    for name in ("memory", "spool"):
        if isinstance(settings.get(name), str):
            settings[name] = _size_from(name, settings[name], named[name])
    try:
        made = msgspec.convert(settings, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(_explained(str(error), settings, named)) from error
    _check(made)
    return made


def _size_from(name: str, text: str, source: str) -> int:
    size = size_from(text)
    if size is None:
        raise UsageError(f"{source}: {name} = {text!r}: not a size; expected 2G, 512M or a number of bytes")
    return size


def _explained(message: str, values: Mapping[str, Any], named: Mapping[str, str]) -> str:
    match = re.search(r"`\$\.(\w+)", message)
    name = match.group(1) if match else ""
    stray = re.match(r"Object contains unknown field `(.*)` - at `\$\.pace\[", message)
    if stray is not None:
        return f"{named.get(name, 'settings')}: [[pace]]: {_stray_pace_key(stray.group(1))}"
    if name == "request":
        return f"{named.get(name, 'settings')}: {explained_request(message)}"
    what = _in_plain_words(re.sub(r" - at `.*", "", message))
    if not name:
        return what
    value = masked_store(repr(values.get(name)))
    choices = by_key()[name].choices
    if choices:
        return f"{named.get(name, 'settings')}: {name.replace('_', '-')} = {value}: expected {_listed(choices)}"
    hint = f", or {NO_LIMIT}" if name in _WITH_NONE and "number" in what else ""
    return f"{named.get(name, 'settings')}: {name.replace('_', '-')} = {value}: {what[0].lower()}{what[1:]}{hint}"


def _listed(choices: Sequence[str]) -> str:
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def _stray_pace_key(key: str) -> str:
    from difflib import get_close_matches

    known = PaceSetting.__struct_fields__
    close = get_close_matches(key, known, n=1)
    unit = " (in seconds)" if close == ["delay"] else ""
    hint = f"did you mean '{close[0]}'{unit}?" if close else f"expected {', '.join(known)}"
    return f"unknown key '{key}'; {hint}"


_LIMITS = frozenset(
    {
        *("max_time", "max_pages_per_host", "max_pages_per_domain", "max_queued", "max_oversize"),
        "target_unique_domains",
    }
)
_WITH_NONE = _LIMITS | {"max_pages"}
NO_LIMIT = "none"  # as a value of these
_PLAIN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
}


def _in_plain_words(message: str) -> str:
    """Turn msgspec's "expected `int | null`, got `str`" into words for people."""
    expected = re.match(r"Expected `(\w+)[^`]*`(?: (>=|>|<=) (\S+))?", message)
    if expected is None or expected.group(1) not in _PLAIN_WORDS:
        return message
    bound = (expected.group(3) or "").removesuffix(".0")
    least = {">=": f" of at least {bound}", ">": f" over {bound}", "<=": f" of at most {bound}"}.get(
        expected.group(2), ""
    )
    return f"Expected {_PLAIN_WORDS[expected.group(1)]}{least}"


def _check(settings: Settings) -> None:
    """Check what a type cannot express."""
    for name in ("include_pattern", "exclude_pattern"):
        for pattern in getattr(settings, name):
            fault = pattern_fault(pattern)
            if fault:
                raise UsageError(f"{name.replace('_', '-')} = {pattern!r}: {fault}")
    for network in settings.allow_network:
        try:
            ip_network(network, strict=False)
        except ValueError as error:
            raise UsageError(f"allow-network = {network!r}: not a network; expected 10.0.0.0/8") from error
    if settings.dns and not _is_address_and_port(settings.dns):
        raise UsageError(f"dns = {settings.dns!r}: not an IP address with a port; expected 127.0.0.1:53")
    check_requests(settings.request, settings.insecure, settings.proxy)
    check_stores(settings.store)
    check_catalogs(settings.catalog)
    check_feeds(settings.feed, settings.store)
    _check_served(settings)
    _check_types(settings)
    for name in settings.accept:
        if not re.fullmatch(_MEDIA_TYPE, name):
            raise UsageError(f"accept = {name!r}: not a media type; expected image/png or image/*")
    check_own_hosts(settings.own_host)
    _check_requisites(settings)
    _check_ranking(settings)
    _check_times(settings)
    _check_robots_token(settings)
    check_revisit(settings)
    check_regions(settings.region, is_strict=settings.strict_regions)
    if settings.memory is not None:
        check_ceiling(settings.memory, settings.workers or 1, settings.max_bytes)


def _check_served(settings: Settings) -> None:
    for name in ("ui_listen", "metrics_listen"):
        if getattr(settings, name):
            address_of(getattr(settings, name), name.replace("_", "-"))
    if settings.ui_url:
        public_url_of(settings.ui_url, "ui-url")


def _check_types(settings: Settings) -> None:
    """Refuse what would read or store other types than the one that is wanted."""
    if settings.types is not PageTypes.HTML:
        return
    if settings.accept:
        raise UsageError(
            f"accept = {', '.join(settings.accept)}: with --types html nothing else is stored; expected one"
        )
    if settings.pdf is PdfUse.DEEP:
        raise UsageError("pdf = deep: with --types html no PDF file is read; expected one of the two")


def _check_ranking(settings: Settings) -> None:
    if settings.domain_budget_by_rank and settings.max_pages_per_domain is None:
        raise UsageError("domain-budget-by-rank: there is no budget; expected --max-pages-per-domain N as well")
    if settings.rank_every and not has_archive(settings.store):
        what = "links are read from the archive; expected --store warc too, or 0"
        raise UsageError(f"rank-every = {settings.rank_every}: {what}")


def _check_requisites(settings: Settings) -> None:
    if settings.max_requisites_per_page > MAX_ROOM:
        given = settings.max_requisites_per_page
        raise UsageError(f"max-requisites-per-page = {given}: expected at most {MAX_ROOM:,}")
    if settings.requisites and settings.check_only:
        raise UsageError("requisites: with --check-only no page is read; expected one of the two")
    if settings.requisites and not has_archive(settings.store):
        what = f"they are stored in WARC files; expected warc in store, which is {', '.join(settings.store)}"
        raise UsageError(f"requisites: {what}")


def _check_times(settings: Settings) -> None:
    for name in ("max_time", "max_wait", "timeout", "retry_wait"):
        seconds = getattr(settings, name)
        if seconds is not None and seconds > MAX_SECONDS:
            raise UsageError(f"{name.replace('_', '-')} = {seconds:g}: expected at most {MAX_SECONDS:,.0f} seconds")
    delay_s = settings.politeness_ms / 1000
    if settings.max_wait < delay_s:
        raise UsageError(
            f"max-wait = {settings.max_wait:g}: a host waits longer between two requests (politeness-ms = "
            f"{settings.politeness_ms}), so the crawl would end after the first; expected at least {delay_s:g}"
        )


def _check_robots_token(settings: Settings) -> None:
    """Check that robots.txt can address the crawler."""
    token = settings.robots_token
    if token and (token.lower() != product_token(token) or not token.isascii()):
        raise UsageError(f"robots-token = {token!r}: not a product token; expected letters, digits, '-' and '_'")
    if settings.user_agent and not token and not product_token(settings.user_agent):
        raise UsageError(
            f"user-agent = {settings.user_agent!r}: names no robot that robots.txt could address; "
            "expected Name/1.0 (+contact), or --robots-token NAME as well"
        )


def _is_address_and_port(text: str) -> bool:
    match = re.fullmatch(r"\[?([0-9a-fA-F.:]+?)\]?(?::(\d{1,5}))?", text)
    if match is None or int(match.group(2) or 53) > 65535:
        return False
    try:
        ip_address(match.group(1))
    except ValueError:
        return False
    return True


def completed(settings: Settings, *sources: Source, has_domain_list: bool) -> Settings:
    """Fill in the defaults that depend on other settings, unless the sources of the settings have a value."""
    is_first_pass = settings.target_unique_domains is not None
    is_given = any("max_pages" in values for _, values in sources)
    if settings.max_pages is None and not is_first_pass and not is_given:
        settings = msgspec.structs.replace(settings, max_pages=DEFAULT_MAX_PAGES)
    if settings.scope is None:
        reach = Reach.ANY if has_domain_list or is_first_pass else Reach.DOMAIN
        settings = msgspec.structs.replace(settings, scope=reach)
    return settings


def _comparable(settings: Settings, name: str) -> Any:  # noqa: ANN401 - the value of any setting
    value = getattr(settings, name)
    if name == "plugin":
        return tuple(map(bare_name, value))  # another version is no other plugin
    return tuple(map(masked_store, value)) if name in WITH_PASSWORDS else value  # which are not stored


def changed_fixed_option(before: Settings, given: Mapping[str, Any], after: Settings) -> Option | None:
    """Return the first option that must not change after a crawl has started, but was given another value."""
    for option in options():
        was = _comparable(before, option.name)
        is_now = _comparable(after, option.name)
        if option.name not in given or was == is_now:
            continue
        if option.is_fixed or (option.is_raised_only and (was is None or is_now is None or is_now < was)):
            return option
    return None


def settings_for_new(sources: Sequence[Source], *, has_domain_list: bool) -> Settings:
    """Return the settings of a new crawl."""
    return completed(merged(*sources), *sources, has_domain_list=has_domain_list)


def settings_for_known(stored: Path, sources: Sequence[Source]) -> Settings:
    """Return the settings of a crawl that continues: the folder's, and what may be changed."""
    kept = set_by_operator(stored)
    values = from_file(stored)
    given = [_without(each, kept, values.get("block_host", [])) for each in sources]
    return _continued((str(stored), values), str(stored.parent), given)


def _without(source: Source, kept: Collection[str], blocked: Sequence[str]) -> Source:
    """Return what a source says, without what commands have set since if it is a file that is given at every start.

    A host that either of them blocks is blocked.
    """
    where, values = source
    if not isinstance(where, FileLabel) or not kept:
        return source
    left = {name: value for name, value in values.items() if name not in kept}
    if "block_host" in kept and "block_host" in values:
        left["block_host"] = list(dict.fromkeys([*blocked, *values["block_host"]]))
    return where, left


def settings_in(stored: bytes, ledger: str) -> Settings:
    """Return the settings of the crawl in a ledger."""
    return merged((ledger, _values_in(stored)))


def _values_in(stored: bytes) -> dict[str, Any]:
    import tomllib

    return {by_key()[key].name: value for key, value in tomllib.loads(stored.decode()).items()}


def settings_for_node(stored: bytes, ledger: str, sources: Sequence[Source]) -> Settings:
    """Return the settings of a node: those of the crawl in a ledger, and what may differ between nodes."""
    values = _values_in(stored)
    before = merged((ledger, values))
    after = merged((ledger, values), *sources)
    for option in options():
        was = _comparable(before, option.name)
        is_now = _comparable(after, option.name)
        if option.name not in PER_NODE and was != is_now:
            raise UsageError(f"--{option.key} is the same on all nodes; {ledger} has {option.key} = {_shown(was)}")
    return _continued((ledger, values), ledger, sources)


def _continued(stored: Source, where: str, sources: Sequence[Source]) -> Settings:
    before = merged(stored)
    after = merged(stored, *sources)
    asked: dict[str, Any] = {}
    for _, values in sources:
        asked.update(values)
    option = changed_fixed_option(before, asked, after)
    if option is not None and option.is_raised_only:
        raise UsageError(
            f"--{option.key} can only be raised once a crawl has started with one; "
            f"{where} has {getattr(before, option.name) or 'none'}"
        )
    if option is not None:
        raise UsageError(
            f"--{option.key} cannot change once a crawl has started; "
            f"{where} has {option.key} = {_shown(getattr(before, option.name))}"
        )
    token = robots_token_of(after)
    token_before = robots_token_of(before)
    if token != token_before:
        raise UsageError(
            f"--user-agent and --robots-token cannot rename a crawl that has started: robots.txt addresses "
            f"{where} as '{token_before}', not '{token}'"
        )
    return completed(after, stored, *sources, has_domain_list=False)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def to_toml(settings: Settings, by_operator: Collection[str] = ()) -> str:
    """Return settings as TOML, without passwords; what is not set is omitted."""
    values = msgspec.to_builtins(settings)
    for name in WITH_PASSWORDS:
        values[name] = [masked_store(url) for url in values[name]]
    tables = {name: values.pop(name) for name in ("pace", "request")}
    if values["max_pages"] is None:
        values["max_pages"] = NO_LIMIT  # else the default would apply to the next run
    lines = [
        f"{name.replace('_', '-')} = {toml_value(value)}"
        for name, value in values.items()
        if value not in (None, "") and name not in SERVED
    ]
    if by_operator:
        lines.append(f"{SET_KEY} = {toml_value(sorted(name.replace('_', '-') for name in by_operator))}")
    for name, rules in tables.items():
        for rule in rules:
            lines.append(f"\n[[{name}]]")
            lines += [f"{key} = {toml_value(value)}" for key, value in rule.items() if value is not None]
    return "\n".join(lines) + "\n"
