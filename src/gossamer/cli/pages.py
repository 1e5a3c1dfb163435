"""`gossamer pages DIR`: which pages are slow, large, thin, deep, without a title, or with that of another page?"""

from __future__ import annotations

import argparse
import sys

from msgspec import Struct

from gossamer.cli.listing import Listing, add_listing, listing_of, write_listing
from gossamer.cli.opening import add_crawl, open_view, warn_of_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.errors import UsageError
from gossamer.handover.page_findings import FoundPages, PageFilter, PageLine, find_pages
from gossamer.handover.where import ascii_host
from gossamer.inspect.report.terminal import table
from gossamer.settings.budget import size_from
from gossamer.telemetry.text import count, plural, printable, size

_URL_CHARS = 400
_TITLE_CHARS = 60
_NOTES = """A page is listed if it matches all that is given; without any of these options, all pages are. The slowest,
largest, thinnest or deepest come first, and pages with the same title together. What has changed is listed by
'gossamer diff DIR --since TIME'. The crawl may be running: what is committed is read.

examples:
  gossamer pages crawls/example --slow 2
  gossamer pages crawls/example --thin 100 --host example.org
  gossamer pages crawls/example --duplicate-title -o titles.csv
"""


class PagesHead(Struct, frozen=True):
    """The first line of the output as JSON."""

    crawl: str
    pages: int
    found: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    parser.add_argument("--slow", type=float, metavar="S", help="whose last answer took at least as many seconds")
    parser.add_argument("--large", metavar="SIZE", help="of at least this size (500K, 2M), decoded")
    parser.add_argument("--thin", type=int, metavar="WORDS", help="HTML with fewer words")
    parser.add_argument("--deep", type=int, metavar="N", help="at least as many links from a seed")
    parser.add_argument("--missing-title", action="store_true", help="HTML without a title")
    parser.add_argument("--duplicate-title", action="store_true", help="with the title of another page of its host")
    parser.add_argument("--noindex", action="store_true", help="that ask not to be indexed")
    parser.add_argument("--host", action="append", default=[], metavar="HOST", help="only of this host (repeatable)")
    add_listing(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    listing, wanted = listing_of(arguments), _filter(arguments)
    with quiet_pipe(), open_view(arguments) as crawl, FoundPages() as found:
        pages = find_pages(crawl, wanted, found)
        head = PagesHead(crawl.name, pages, found.count)
        if listing.form == "table":
            _print_table(head, found, listing, is_timed=wanted.slow_ms is not None)
        else:
            write_listing(listing, head, PageLine, found.rows())
        if wanted.slow_ms is not None:
            warn_of_elsewhere(crawl, "the times of requests")
            if crawl.settings.mask_queries:
                print("INCOMPLETE: the times of URLs with a query are not known (--mask-queries)", file=sys.stderr)
    return 0


def _filter(arguments: argparse.Namespace) -> PageFilter:
    large = size_from(arguments.large) if arguments.large is not None else None
    if arguments.large is not None and large is None:
        raise UsageError(f"--large {printable(arguments.large)}: expected a size such as 500K or 2M")
    for name in ("slow", "thin", "deep"):
        number = getattr(arguments, name)
        if number is not None and not 0 <= number < 1e9:
            raise UsageError(f"--{name} {number:g}: expected a number from 0 to 999,999,999")
    return PageFilter(
        slow_ms=None if arguments.slow is None else round(1000 * arguments.slow),
        large=large,
        thin=arguments.thin,
        deep=arguments.deep,
        missing_title=arguments.missing_title,
        duplicate_title=arguments.duplicate_title,
        noindex=arguments.noindex,
        hosts=frozenset(ascii_host(host.lower()) for host in arguments.host),
    )


def _print_table(head: PagesHead, found: FoundPages, listing: Listing, *, is_timed: bool) -> None:
    print(f"{printable(head.crawl, _URL_CHARS)}: {count(head.found)} of {plural(head.pages, 'page')}")
    if not head.found:
        return
    heads = ["URL", "status", "words", "size", "depth", *(["seconds"] if is_timed else []), "<title"]
    rows = [
        (
            printable(page.url, _URL_CHARS),
            str(page.status),
            count(page.words),
            size(page.bytes),
            str(page.depth),
            *([f"{(page.response_ms or 0) / 1000:.2f}"] if is_timed else []),
            printable(page.title, _TITLE_CHARS) + (" (noindex)" if page.noindex else ""),
        )
        for page in listing.some(found.rows())
    ]
    print("\n" + table(heads, rows, most=1 << 20))
    if more := listing.rest(head.found, "--limit 0 shows all"):
        print(f"  {more}")
