"""Seeds: URLs, bare domains, files with one per line, CSV lists of domains.

A line of a file may give a seed rules and metadata of its own, separated by tabs: `URL<TAB>key=value<TAB>key=value…`.
`scope` and `depth` replace the crawl's for what is found from this seed; any other key is metadata.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from itertools import count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.links.scope import Reach
from gossamer.core.url.forms import canonical, host_of, link_to
from gossamer.foundation.expressions import expression
from gossamer.model.errors import UsageError
from gossamer.model.records import Link, UrlId
from gossamer.model.state import SeedRecord
from gossamer.settings.toml import read_toml

MAX_SEED_DEPTH = 999_999
SEEDS_KEY = "seeds"  # in a configuration file
_BARE = expression(r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?(?:[/?].*)?", re.UNICODE)
_KEY = r"[A-Za-z0-9._-]+"
_SPACED = expression(r"[^\s?]+ +[A-Za-z0-9._-]+=")  # fields behind spaces, which a URL would take for its own
_CREDENTIALS = expression(r"(?<![^/])[^/\s:@]*:[^/\s@]*@")


class Seed(Struct, frozen=True):
    """One seed."""

    link: Link
    is_guess: bool = False  # whether https is only a guess
    rank: float | None = None  # from 0 to 1, if a list gives one
    had_credentials: bool = False  # whether it had a user name or password
    rules: SeedRecord | None = None  # rules and metadata of its own
    is_trusted: bool = True  # whether a private address that it names may be contacted, as one that an operator gave


def seed_from(text: str, where: str) -> Seed:
    """Return the seed in a text; `where` shows the user which text is meant."""
    text = text.strip()
    if "://" in text:
        scheme = text.partition("://")[0].lower()
        if scheme not in ("http", "https"):
            raise UsageError(f"{where}: {_short(text)}: scheme '{scheme}' cannot be crawled; expected http or https")
        url = canonical(text)
        if url is None:
            raise UsageError(f"{where}: {_short(text)}: not a URL; expected https://example.org/")
        return Seed(link_to(url), had_credentials="@" in re.split(r"[/?#\\]", text.partition("://")[2].lstrip("/"))[0])
    url = canonical("https://" + text) if _BARE.fullmatch(text) else None
    if url is None or ("." not in host_of(url) and host_of(url) != "localhost" and host_of(url)[0] != "["):
        raise UsageError(
            f"{where}: {_short(text)}: neither a URL nor a domain nor a file; expected https://example.org/"
        )
    return Seed(link_to(url), is_guess=True)


def identified(seeds: Sequence[Seed]) -> list[Seed]:
    """Return seeds with the ids that they have in this crawl: its key and its regions were not known before."""
    return [replace(seed, link=link_to(seed.link.url)) for seed in seeds]


def _short(text: str) -> str:
    text = _CREDENTIALS.sub("", text)  # a password has no place in a message
    return repr(text if len(text) <= 80 else text[:77] + "…")


def seeds_from(arguments: Iterable[str]) -> list[Seed]:
    """Return the seeds that arguments name: URLs, bare domains, or files of them."""
    seeds: dict[UrlId, Seed] = {}
    for argument in arguments:
        if _names_file(argument):
            _add_lines(Path(argument), seeds)
        else:
            _add_line(argument, "seed", seeds)
    return list(seeds.values())


def lines_of(arguments: Iterable[str]) -> list[str]:
    """Return the seeds that arguments name as lines, those of files too; raise if one is not a seed."""
    lines: list[str] = []
    for argument in arguments:
        found = [line for _, line in _lines_in(Path(argument))] if _names_file(argument) else [argument]
        seeds_in(found)
        lines += found
    return lines


def seeds_in(lines: Iterable[str]) -> list[Seed]:
    """Return the seeds in lines as those of a file."""
    seeds: dict[UrlId, Seed] = {}
    for line in lines:
        _add_line(line, "seed", seeds)
    return list(seeds.values())


def line_of(seed: Seed) -> str:
    """Return a seed as a line of a file; a rank from a list of domains is not part of it."""
    text = seed.link.url.removeprefix("https://") if seed.is_guess else seed.link.url
    rules = seed.rules
    if rules is None:
        return text
    fields = {"scope": rules.scope} if rules.scope else {}
    fields |= {"depth": str(rules.depth)} if rules.depth >= 0 else {}
    return "\t".join([text, *(f"{key}={value}" for key, value in {**fields, **rules.metadata}.items())])


def seeds_in_config(path: Path) -> list[Seed]:
    """Return the seeds of a configuration file: as on a command line, files beside it by their names."""
    named = read_toml(path).get(SEEDS_KEY, [])
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise UsageError(f'{path}: seeds = {named!r}: not a list of texts; expected ["https://example.org/"]')
    return seeds_from(_beside(path, each) for each in named)


def _beside(path: Path, argument: str) -> str:
    """Return what an argument in a file means: a file beside it, or what it says."""
    is_url = "://" in argument or "\t" in argument
    other = path.parent / argument
    return str(other) if not is_url and (other.is_file() or _names_file(argument)) else argument


def _names_file(argument: str) -> bool:
    """Return whether an argument means a file, existing or not, rather than a URL or a domain."""
    if "://" in argument or "\0" in argument or "\t" in argument or _CREDENTIALS.match(argument):
        return False
    path = Path(argument)
    try:
        if path.is_file():
            return True
    except OSError:  # too long for the name of a file
        return False
    first, slash, _ = argument.partition("/")
    if slash and not _BARE.fullmatch(argument):
        return True
    # `example.org/robots.txt` is a page; `seeds.txt` and `lists/seeds.txt` are files that are missing.
    is_host = bool(slash) and first not in (".", "..") and ("." in first or ":" in first)
    return path.suffix in (".txt", ".lst", ".csv", ".list") and not is_host


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot read the seeds: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text file with one URL per line: {error.reason}") from error


def _add_lines(path: Path, seeds: dict[UrlId, Seed]) -> None:
    """Add the seeds of a file."""
    for number, line in _lines_in(path):
        _add_line(line, f"{path}:{number}", seeds)


def _lines_in(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that have a seed, with their numbers."""
    lines = [(number, line.strip()) for number, line in enumerate(_read(path).splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise UsageError(f"{path}: no seeds in it; expected one URL per line")
    return lines


def _add_line(line: str, where: str, seeds: dict[UrlId, Seed]) -> None:
    """Add the seed of a line: a URL or domain, then its rules and metadata. The same seed may be given repeatedly."""
    text, *fields = line.split("\t")
    if _SPACED.match(text.strip()):
        raise UsageError(f"{where}: {_short(text)}: fields behind spaces; expected a tab before each key=value")
    seed = seed_from(re.split(r"\s+#", text)[0] if text.strip() else line, where)
    rules = _rules_from(seed.link.url, fields, where)
    known = seeds.setdefault(seed.link.id, seed)
    if rules is None:
        return
    if known.rules is not None and known.rules != rules:
        before = known.rules.stated
        now = rules.stated
        raise UsageError(f"{where}: {_short(seed.link.url)} was given before with {before}, not {now}")
    seeds[seed.link.id] = replace(known, rules=rules)


def _rules_from(url: str, fields: Iterable[str], where: str) -> SeedRecord | None:
    """Return the rules and metadata in the fields of a line; None if there are none."""
    values: dict[str, str] = {}
    for field in filter(None, map(str.strip, fields)):
        if field.startswith("#"):
            break
        key, equals, value = field.partition("=")
        if not equals or not re.fullmatch(_KEY, key):
            form = "expected key=value, with a key of letters, digits, '-', '_' and '.'"
            raise UsageError(f"{where}: {_short(field)}: {form}")
        if key.lower() in ("scope", "depth") and not key.islower():
            raise UsageError(f"{where}: {_short(field)}: did you mean '{key.lower()}'?")
        if key in values:
            raise UsageError(f"{where}: '{key}' is given twice")
        values[key] = value.strip()
    if not values:
        return None
    scope = _scope_from(values.pop("scope", None), where)
    depth = _depth_from(values.pop("depth", None), where)
    return SeedRecord(url, scope=scope, depth=depth, metadata=values)


def _scope_from(text: str | None, where: str) -> str:
    if text is None:
        return ""
    if text not in set(Reach):
        *first, last = Reach
        raise UsageError(f"{where}: scope {_short(text)} is unknown; expected {', '.join(first)} or {last}")
    return text


def _depth_from(text: str | None, where: str) -> int:
    if text is None:
        return -1
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEED_DEPTH))):
        raise UsageError(f"{where}: depth {_short(text)}: expected a whole number from 0 to {MAX_SEED_DEPTH}")
    return int(text)


def seeds_from_csv(path: Path) -> list[Seed]:
    """Return one seed per row of a list of domains: the `domain` column, else the last one."""
    import csv

    rows = [row for row in csv.reader(_read(path).splitlines()) if row and not row[0].startswith("#")]
    if not rows:
        raise UsageError(f"{path}: no domains in it; expected one domain per row")
    header = [cell.strip().lower() for cell in rows[0]]
    column = header.index("domain") if "domain" in header else -1
    if column >= 0:
        rows = rows[1:]
    seeds: list[Seed] = []
    for position, row in enumerate(rows):
        cell = row[column].strip() if -len(row) <= column < len(row) else ""
        if not cell:
            continue
        seed = seed_from(cell, f"{path}: row {position + 1}")
        # Top-site lists are sorted by rank: the first row is the most important.
        rank = 1.0 - position / max(1, len(rows))
        seeds.append(Seed(seed.link, seed.is_guess, rank, seed.had_credentials))
    if not seeds:
        raise UsageError(f"{path}: no domains in it; expected one domain per row")
    return seeds


def opened_addresses(seed: Seed) -> tuple[str, ...]:
    """Return the private or loopback addresses that a seed names and thereby allows."""
    return _private_addresses(seed.link.host) if seed.is_trusted else ()


def _private_addresses(host: str) -> tuple[str, ...]:
    """Return the private or loopback addresses that the name of a host stands for."""
    if host == "localhost" or host.endswith(".localhost"):
        return ("127.0.0.1", "::1")
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return ()
    return () if address.is_global else (str(address),)


def needs_contact(seed: Seed) -> bool:
    """Return whether a seed leads to the public web, where a crawler must identify itself."""
    host = seed.link.host.rstrip(".")
    return not _private_addresses(seed.link.host) and host != "test" and not host.endswith(".test")


def default_folder(about: str) -> Path:
    """Return a new folder for a crawl without `--out`, named after its first host."""
    safe = re.sub(r"[^\w.-]", "_", about)[:80]
    name = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    numbered = (Path("crawls") / (name if number == 1 else f"{name}-{number}") for number in count(1))
    return next(path for path in numbered if not path.exists())
