"""`gossamer url URL`: how Gossamer interprets a URL.

Normal form, key, host, registrable domain and scope.
"""

from __future__ import annotations

import argparse

from gossamer.cli.options import add_some, given
from gossamer.core.traps.shapes import is_dated, shape_trap
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import canonical, host_of, key_of, origin_of
from gossamer.model.errors import UsageError
from gossamer.settings.load import completed, merged
from gossamer.settings.rules import scope_of
from gossamer.settings.seeds import seed_from

NAMES = ("scope", "include_pattern", "exclude_pattern", "default_excludes", "block_host", "accept")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--base", default="", metavar="URL", help="resolve against this")
    parser.add_argument("--seed", metavar="URL", help="show whether a crawl from this seed would queue it")
    add_some(parser, NAMES)


def run(arguments: argparse.Namespace) -> int:
    url = canonical(arguments.url, arguments.base) or (None if arguments.base else _guessed(arguments.url))
    if url is None:
        raise UsageError(f"{arguments.url!r}: not an http(s) URL; expected https://example.org/page")
    host = host_of(url)
    rows = [
        ("requested", url),
        ("key", key_of(url)),
        ("host", host),
        ("origin", origin_of(url)),
        ("domain", registrable_domain(host)),
        ("trap", shape_trap(url) or ("calendar budget" if is_dated(url) else "none")),
        ("scope", _scope(arguments, url, host)),
    ]
    for name, value in rows:
        print(f"{name:<10} {value}")
    return 0


def _guessed(text: str) -> str | None:
    return seed_from(text, "url").link.url if "://" not in text else None


def _scope(arguments: argparse.Namespace, url: str, host: str) -> str:
    scope = scope_of(completed(merged(*given(arguments)), has_domain_list=False))
    seed = seed_from(arguments.seed, "--seed").link if arguments.seed else None
    scope.join(seed.url if seed else url, seed.host if seed else host)
    rule = scope.refusal(url, host)
    of = f" of {seed.url}" if seed else ""
    return f"in{of}" if rule is None else f"out{of}: {rule}"
