"""`gossamer pages DIR`: which pages are slow, large, thin, deep, without a title or description of their own?

Also those that are `noindex` or canonical elsewhere.
"""

from __future__ import annotations

import argparse
import sys

from msgspec import Struct

from gossamer.cli.listing import Listing, add_listing, listing_of, write_listing
from gossamer.cli.opening import add_crawl, open_view, report_elsewhere, warn_of_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.handover.export.page_heads import is_html_page
from gossamer.handover.export.stored import ExportedPages
from gossamer.handover.findings.page_findings import FindingLine, PageFilter, find_pages
from gossamer.handover.listing import SortedSpool
from gossamer.handover.where import ascii_host
from gossamer.model.errors import UsageError
from gossamer.report.terminal import table
from gossamer.settings.budget import size_from
from gossamer.telemetry.text import count, plural, printable, size

_URL_CHARS = 400
_TITLE_CHARS = 60
_NOTES = """A page is listed if it matches all that is given; without any of these options, all pages are. The slowest,
largest, thinnest or deepest come first, and pages with the same title or description together; beyond that they are
sorted by URL. Descriptions and
canonical URLs are read in the stored pages, everything else is in the catalog. What has changed is listed by
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
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    parser.add_argument("--slow", type=float, metavar="S", help="whose last answer took at least as many seconds")
    parser.add_argument("--large", metavar="SIZE", help="of at least this size (500K, 2M), decoded")
    parser.add_argument("--thin", type=int, metavar="WORDS", help="HTML with fewer words")
    parser.add_argument("--deep", type=int, metavar="N", help="at least as many links from a seed")
    parser.add_argument("--missing-title", action="store_true", help="HTML without a title")
    parser.add_argument("--duplicate-title", action="store_true", help="with the title of another page of its host")
    parser.add_argument("--missing-description", action="store_true", help="HTML without a description")
    parser.add_argument(
        "--duplicate-description", action="store_true", help="with the description of another page of its host"
    )
    parser.add_argument("--canonical-elsewhere", action="store_true", help="that name another URL as the canonical one")
    parser.add_argument("--noindex", action="store_true", help="that ask not to be indexed")
    parser.add_argument("--soft-404", action="store_true", help='that say "not found" with status 200')
    parser.add_argument("--host", action="append", default=[], metavar="HOST", help="only of this host (repeatable)")
    add_listing(parser)


def run(arguments: argparse.Namespace) -> int:
    listing = listing_of(arguments)
    wanted = _filter(arguments)
    missing = 0
    with quiet_pipe(), open_view(arguments) as crawl, SortedSpool(FindingLine) as found:
        pages = find_pages(crawl, wanted, found)
        head = PagesHead(crawl.name, pages, found.count)
        if listing.form == "table":
            _print_table(head, found, listing, wanted)
        else:
            write_listing(listing, head, FindingLine, found.rows())
        if wanted.slow_ms is not None:
            warn_of_elsewhere(crawl, "the times of requests")
            if crawl.settings.mask_queries:
                print("INCOMPLETE: the times of URLs with a query are not known (--mask-queries)", file=sys.stderr)
        missing = ExportedPages(crawl).elsewhere(is_html_page) if wanted.reads_heads and crawl.folders.elsewhere else 0
        report_elsewhere(crawl, missing)
    return 1 if missing else 0


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
        soft_404=arguments.soft_404,
        missing_description=arguments.missing_description,
        duplicate_description=arguments.duplicate_description,
        canonical_elsewhere=arguments.canonical_elsewhere,
        hosts=frozenset(ascii_host(host.lower()) for host in arguments.host),
    )


def _print_table(head: PagesHead, found: SortedSpool[FindingLine], listing: Listing, wanted: PageFilter) -> None:
    print(f"{printable(head.crawl, _URL_CHARS)}: {count(head.found)} of {plural(head.pages, 'page')}")
    if not head.found:
        return
    is_timed = wanted.slow_ms is not None
    last = _last_column(wanted)
    heads = ["URL", "status", "words", "size", "depth", *(["seconds"] if is_timed else []), f"<{last}"]
    rows = [
        (
            printable(page.url, _URL_CHARS),
            str(page.status),
            count(page.words),
            size(page.bytes),
            str(page.depth),
            *([f"{(page.response_ms or 0) / 1000:.2f}"] if is_timed else []),
            printable(getattr(page, last) or "", _URL_CHARS if last == "canonical" else _TITLE_CHARS)
            + (" (noindex)" if page.noindex else "")
            + (" (soft 404)" if page.soft_404 else ""),
        )
        for page in listing.some(found.rows())
    ]
    print("\n" + table(heads, rows, most=1 << 20))
    if more := listing.rest(head.found, "--limit 0 shows all"):
        print(f"  {more}")


def _last_column(wanted: PageFilter) -> str:
    """Return which field a table ends with: what the question is about."""
    if wanted.canonical_elsewhere:
        return "canonical"
    return "description" if wanted.duplicate_description else "title"
