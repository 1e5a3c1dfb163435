"""`gossamer sitemap DIR`: do the sitemaps agree with what the crawl found?

Entries that are broken, redirects, forbidden, `noindex`, not fetched or wrongly dated, and pages that are not listed.
The exit status is 1 if there is something to correct.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from msgspec import Struct

from gossamer.cli.listing import Listing, add_listing, listing_of, write_listing
from gossamer.cli.opening import add_crawl, open_view, report_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.handover.export.stored import ExportedPages
from gossamer.handover.findings.sitemap_findings import BAD, SitemapCounts, SitemapFault, SitemapFinding, Sitemaps
from gossamer.handover.listing import SortedSpool
from gossamer.model.records import FetchKind, UrlRecord
from gossamer.report.terminal import table
from gossamer.settings.model import SitemapUse
from gossamer.telemetry.text import count, plural, printable

_URL_CHARS = 400
_ORDER = {kind: number for number, kind in enumerate(SitemapFault)}
_MEANING = {
    SitemapFault.UNREADABLE: "sitemaps that could not be read",
    SitemapFault.BROKEN: "listed, and broken",
    SitemapFault.REDIRECT: "listed, and a redirect",
    SitemapFault.DISALLOWED: "listed, and forbidden by robots.txt",
    SitemapFault.NOINDEX: "listed, and noindex",
    SitemapFault.LASTMOD: "lastmod contradicts",
    SitemapFault.NOT_FETCHED: "listed, and not fetched",
    SitemapFault.NOT_LISTED: "pages that no sitemap lists",
}
_NOTES = """Compares the sitemaps that the crawl has read, those that robots.txt lists, with its pages. Exit status 1:
an entry is broken, a redirect, noindex or forbidden, or has a date that contradicts, or a sitemap cannot be read. What
was not fetched or is not listed may be intended, and does not count. The crawl may be running: what is committed is
read.

examples:
  gossamer sitemap crawls/example
  gossamer sitemap crawls/example --finding broken --finding redirect -o sitemap.csv
"""


class SitemapHead(Struct, frozen=True):
    """The first line of the output as JSON."""

    crawl: str
    compared: SitemapCounts
    counts: dict[str, int]  # by finding


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    parser.add_argument(
        "--finding",
        action="append",
        default=[],
        choices=[kind.value for kind in SitemapFault],
        help="list only this kind (repeatable); all are counted",
    )
    add_listing(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: there are differences that should be corrected."""
    listing = listing_of(arguments)
    listed = frozenset(arguments.finding or [kind.value for kind in SitemapFault])
    counts: Counter[str] = Counter()
    missing = 0
    with (
        quiet_pipe(),
        open_view(arguments) as crawl,
        SortedSpool(SitemapFinding) as waiting,
        Sitemaps(crawl) as sitemaps,
    ):
        for found in sitemaps.findings():
            counts[found.finding] += 1
            if found.finding in listed:
                waiting.add(found, found.url, _ORDER[found.finding])
        ordered = {kind.value: counts[kind] for kind in SitemapFault if counts[kind]}
        head = SitemapHead(crawl.name, sitemaps.counts, ordered)
        if listing.form == "table":
            _print_table(head, waiting, listing)
        else:
            write_listing(listing, head, SitemapFinding, waiting.rows())
        if not sitemaps.counts.sitemaps:
            is_off = crawl.settings.sitemaps is SitemapUse.OFF
            why = "--sitemaps off" if is_off else "robots.txt of no host lists one"
            print(f"note: the crawl has read no sitemap ({why})", file=sys.stderr)
        missing = ExportedPages(crawl).elsewhere(_is_sitemap) if crawl.folders.elsewhere else 0
        report_elsewhere(crawl, missing)
    return 1 if missing or any(counts[kind] for kind in BAD) else 0


def _is_sitemap(row: UrlRecord) -> bool:
    return row.kind is FetchKind.SITEMAP


def _print_table(head: SitemapHead, waiting: SortedSpool[SitemapFinding], listing: Listing) -> None:
    what = head.compared
    read = f"{plural(what.sitemaps, 'sitemap')} with {plural(what.listed, 'URL')}, {plural(what.pages, 'page')}"
    print(f"{printable(head.crawl, _URL_CHARS)}: {read}")
    if not head.counts:
        return
    rows = [(_MEANING[SitemapFault(kind)], count(number)) for kind, number in head.counts.items()]
    print("\n" + table(["finding", "URLs"], rows))
    shown: Counter[str] = Counter()
    kind = ""
    for found in waiting.rows():
        shown[found.finding] += 1
        if listing.limit and shown[found.finding] > listing.limit:
            continue
        if found.finding != kind:
            kind = found.finding
            print(f"\n{_MEANING[found.finding]}")
        print(_line(found))
    if listing.limit and any(number > listing.limit for number in shown.values()):
        print(f"\n{listing.limit} of each are shown; --limit 0 shows all")


def _line(found: SitemapFinding) -> str:
    outcome = f"{found.outcome} {found.status or ''}".strip() if found.outcome not in ("", "ok") else ""
    dates = f"lastmod {found.lastmod}" if found.finding is SitemapFault.LASTMOD else ""
    if found.last_modified and dates:
        dates += f", Last-Modified {found.last_modified}"
    chain = " -> ".join(found.chain)
    notes = [printable(note, _URL_CHARS) for note in (outcome, chain and f"-> {chain}", dates, found.reason) if note]
    source = f"  (in {printable(found.sitemap, _URL_CHARS)})" if found.sitemap else ""
    return f"  {printable(found.url, _URL_CHARS)}  {'; '.join(notes)}".rstrip() + source
