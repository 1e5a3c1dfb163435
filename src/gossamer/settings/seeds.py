"""Seeds: URLs, bare domains, files with one per line, CSV lists of domains."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterable
from ipaddress import ip_address
from itertools import count
from pathlib import Path

from msgspec import Struct

from gossamer.core.url import canonical, host_of, link_to
from gossamer.errors import UsageError
from gossamer.records import Link

_BARE = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?(?:[/?].*)?", re.UNICODE)

_CREDENTIALS = re.compile(r"(?<![^/])[^/\s:@]*:[^/\s@]*@")


class Seed(Struct, frozen=True):
    """One seed: a link; whether https is only a guess; its rank from 0 to 1; whether it had a user name or password."""

    link: Link
    is_guess: bool = False
    rank: float = 0.5
    had_credentials: bool = False


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


def _short(text: str) -> str:
    text = _CREDENTIALS.sub("", text)  # a password has no place in a message
    return repr(text if len(text) <= 80 else text[:77] + "…")


def seeds_from(arguments: Iterable[str]) -> list[Seed]:
    """Return the seeds that arguments name: URLs, bare domains, or files of them."""
    seeds: list[Seed] = []
    for argument in arguments:
        if _names_file(argument):
            seeds += _from_lines(Path(argument))
        else:
            seeds.append(seed_from(argument, "seed"))
    return seeds


def _names_file(argument: str) -> bool:
    """Return whether an argument means a file, existing or not, rather than a URL or a domain."""
    if "://" in argument or "\0" in argument or _CREDENTIALS.match(argument):
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


def _from_lines(path: Path) -> list[Seed]:
    seeds = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        text = line.split("\t")[0].strip()
        if text and not text.startswith("#"):
            seeds.append(seed_from(re.split(r"\s+#", text)[0], f"{path}:{number}"))
    if not seeds:
        raise UsageError(f"{path}: no seeds in it; expected one URL per line")
    return seeds


def seeds_from_csv(path: Path) -> list[Seed]:
    """Return one seed per row of a list of domains: the `domain` column, else the last one."""
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
    host = seed.link.host
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
    return not opened_addresses(seed) and host != "test" and not host.endswith(".test")


def default_folder(about: str) -> Path:
    """Return a new folder for a crawl without `--out`, named after its first host."""
    safe = re.sub(r"[^\w.-]", "_", about)[:80]
    name = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    numbered = (Path("crawls") / (name if number == 1 else f"{name}-{number}") for number in count(1))
    return next(path for path in numbered if not path.exists())
